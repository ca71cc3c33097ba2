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

// Sums the gradients that flow into one output of a node in the order of their
// ranks, whatever the order in which they arrive. Thread-compatible.
class GradientSum {
 public:
  // Adds the gradient of `rank`, one of 0, 1, 2...; undefined adds nothing.
  void Add(int rank, Gradient grad);
  Gradient Take() { return std::move(sum_); }
  // Returns the present sum for the sender of `rank` to accumulate into in
  // place; undefined unless that rank is next and the sum is an unshared
  // tensor.
  Tensor Lend(int rank);
  // Returns a lent sum; then call Add for that sender without a gradient.
  void Return(Tensor sum) { sum_ = std::move(sum); }

 private:
  Gradient sum_;
  int next_ = 0;
  std::map<int, Gradient> early_;  // by rank, all above next_
};

// One node that a pass reaches.
struct PlannedNode {
  // The destination of the gradient of one of the node's edges.
  struct Flow {
    int to = -1;  // index of a planned node; -1: the gradient is not needed
    int output = 0;
    int rank = 0;
  };

  std::shared_ptr<Node> node;
  std::vector<Flow> flows;        // one for each edge
  std::vector<GradientSum> sums;  // one for each output of the forward op
  int pending = 0;                // edges into it, plus one for a root's feed
  std::vector<std::pair<int, size_t>> captures;  // output -> index of wanted
  bool captured_only = false;                    // no place beyond it is wanted
};

// The part of the graph that a pass runs: all, or what leads to some places.
struct PlanScope {
  bool all = true;
  std::vector<Edge> wanted = {};  // places whose gradients are captured
  std::vector<std::shared_ptr<Node>> ends = {};  // nodes that run, too
};

// The nodes of a pass in the order that GraphTask documents.
class GraphPlan {
 public:
  GraphPlan() = default;
  GraphPlan(const std::vector<std::shared_ptr<Node>>& roots,
            const PlanScope& scope);

  std::vector<PlannedNode>& nodes() { return nodes_; }
  // The index in nodes() of each root; -1 if nothing wanted lies beyond it.
  const std::unordered_map<const Node*, int>& roots() const { return roots_; }

 private:
  std::vector<PlannedNode> nodes_;
  std::unordered_map<const Node*, int> roots_;
};

}  // namespace baton::autograd
