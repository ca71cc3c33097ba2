// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/graph_plan.h"

#include <algorithm>

#include "autograd/accumulate.h"

namespace baton::autograd {
namespace {

using NodePtr = std::shared_ptr<Node>;

// The reverse postorder of a depth-first search is a topological order. Roots
// and edges are visited last to first, so that the first ones end up in front.
std::vector<NodePtr> TopologicalOrder(const std::vector<NodePtr>& roots) {
  struct Visit {
    NodePtr node;
    size_t edges_left;
  };
  std::vector<NodePtr> order;
  std::unordered_map<const Node*, bool> seen;
  std::vector<Visit> stack;
  const auto enter = [&](const NodePtr& node) {
    if (node == nullptr || !seen.emplace(node.get(), true).second) return;
    stack.push_back({node, node->edges().size()});
  };
  for (size_t r = roots.size(); r-- > 0;) {
    enter(roots[r]);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.edges_left > 0) {
        enter(top.node->edges()[--top.edges_left].node);
      } else {
        order.push_back(std::move(top.node));
        stack.pop_back();
      }
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

using Positions = std::unordered_map<const Node*, int>;

int PositionOf(const Positions& positions, const Node* node) {
  const auto found = positions.find(node);
  return found == positions.end() ? -1 : found->second;
}

// Drops the nodes from which neither a wanted place nor an end can be reached.
std::vector<NodePtr> OnTheWayTo(const PlanScope& scope,
                                std::vector<NodePtr> order) {
  std::unordered_map<const Node*, bool> useful;
  for (const Edge& edge : scope.wanted) {
    if (edge.valid()) useful[edge.node.get()] = true;
  }
  for (const NodePtr& end : scope.ends) useful[end.get()] = true;
  std::vector<NodePtr> kept;
  for (size_t i = order.size(); i-- > 0;) {
    const std::vector<Edge>& edges = order[i]->edges();
    const bool leads = std::any_of(
        edges.begin(), edges.end(),
        [&](const Edge& edge) { return useful.count(edge.node.get()) > 0; });
    if (leads) useful[order[i].get()] = true;
    if (useful.count(order[i].get()) > 0) kept.push_back(std::move(order[i]));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

void GradientSum::Add(int rank, Gradient grad) {
  if (rank != next_) {
    early_.emplace(rank, std::move(grad));
    return;
  }
  AccumulateInto(sum_, std::move(grad));
  ++next_;
  while (!early_.empty() && early_.begin()->first == next_) {
    AccumulateInto(sum_, std::move(early_.begin()->second));
    early_.erase(early_.begin());
    ++next_;
  }
}

Tensor GradientSum::Lend(int rank) {
  const bool can = rank == next_ && sum_.defined() && !sum_.is_rows() &&
                   IsExclusive(sum_.values());
  return can ? std::exchange(sum_, {}).values() : Tensor();
}

GraphPlan::GraphPlan(const std::vector<NodePtr>& roots,
                     const PlanScope& scope) {
  std::vector<NodePtr> order = TopologicalOrder(roots);
  if (!scope.all) order = OnTheWayTo(scope, std::move(order));

  Positions positions;
  nodes_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    positions.emplace(order[i].get(), static_cast<int>(i));
    nodes_[i].sums.resize(static_cast<size_t>(order[i]->num_outputs()));
    nodes_[i].node = std::move(order[i]);
  }
  for (const NodePtr& root : roots) {
    if (root == nullptr) continue;
    const int at = PositionOf(positions, root.get());
    if (roots_.emplace(root.get(), at).second && at >= 0)
      nodes_[static_cast<size_t>(at)].pending = 1;
  }
  // Counts the gradients that each place gets so far; a root's feed has rank 0.
  std::vector<std::vector<int>> ranks(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    ranks[i].assign(nodes_[i].sums.size(), nodes_[i].pending);
  }
  for (PlannedNode& planned : nodes_) {
    planned.captured_only = !scope.all;
    for (const Edge& edge : planned.node->edges()) {
      PlannedNode::Flow flow;
      if (edge.valid()) flow.to = PositionOf(positions, edge.node.get());
      if (flow.to >= 0) {
        flow.output = edge.index;
        flow.rank = ranks[static_cast<size_t>(flow.to)]
                         [static_cast<size_t>(edge.index)]++;
        ++nodes_[static_cast<size_t>(flow.to)].pending;
        planned.captured_only = false;
      }
      planned.flows.push_back(flow);
    }
  }
  for (const NodePtr& end : scope.ends) {
    const int at = PositionOf(positions, end.get());
    if (at >= 0) nodes_[static_cast<size_t>(at)].captured_only = false;
  }
  for (size_t i = 0; i < scope.wanted.size(); ++i) {
    const Edge& place = scope.wanted[i];
    const int at = PositionOf(positions, place.node.get());
    if (at >= 0)
      nodes_[static_cast<size_t>(at)].captures.emplace_back(place.index, i);
  }
}

}  // namespace baton::autograd
