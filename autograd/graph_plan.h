// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/node.h"

namespace baton::autograd {

// The gradients that flow into one output of a node, summed in the order of
// their rank whatever the order they come in. Thread-compatible.
class GradientSum {
 public:
  // The gradient of `rank`, one of 0, 1, 2...; undefined adds nothing.
  void Add(int rank, Gradient grad);
  Gradient Take() { return std::move(sum_); }
  // What is summed so far, for the sender of `rank` to add to in place;
  // undefined unless it comes next and nobody else holds the sum, a tensor.
  Tensor Lend(int rank);
  // Gives that back; then Add tells of the sender without a gradient.
  void Return(Tensor sum) { sum_ = std::move(sum); }

 private:
  Gradient sum_;
  int next_ = 0;
  std::map<int, Gradient> early_;  // by rank, all above next_
};

// One reached node of a pass.
struct PlannedNode {
  // Where the gradient of one of the node's edges goes.
  struct Flow {
    int to = -1;  // planned node; -1: nobody wants it
    int output = 0;
    int rank = 0;
  };

  std::shared_ptr<Node> node;
  std::vector<Flow> flows;        // one for each edge
  std::vector<GradientSum> sums;  // one for each output of the forward op
  int pending = 0;                // edges into it, plus one for a root's feed
  std::vector<std::pair<int, size_t>> captures;  // output -> index of wanted
  bool captured_only = false;  // nothing wanted lies beyond it
};

// What of the graph a pass is for: all, or what leads to some places.
struct PlanScope {
  bool all = true;
  std::vector<Edge> wanted = {};  // of whose gradients the pass knows
  std::vector<std::shared_ptr<Node>> ends = {};  // that run, too
};

// The nodes of a pass in the order that GraphTask promises.
class GraphPlan {
 public:
  GraphPlan() = default;
  GraphPlan(const std::vector<std::shared_ptr<Node>>& roots,
            const PlanScope& scope);

  std::vector<PlannedNode>& nodes() { return nodes_; }
  // Position in nodes() of each root; -1 when nothing wanted lies beyond it.
  const std::unordered_map<const Node*, int>& roots() const { return roots_; }

 private:
  std::vector<PlannedNode> nodes_;
  std::unordered_map<const Node*, int> roots_;
};

}  // namespace baton::autograd
