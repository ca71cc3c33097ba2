// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/node_claims.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

using Nodes = std::vector<std::shared_ptr<autograd::Node>>;

std::string Describe(const autograd::Node& node) {
  const auto* end = dynamic_cast<const autograd::Accumulator*>(&node);
  if (end == nullptr) return absl::StrCat("a ", node.name());
  const Variable leaf = end->leaf();
  return leaf.defined() ? "the parameter " + leaf.tensor().ToString()
                        : "a parameter";
}

}  // namespace

absl::StatusOr<Nodes> NodeClaims::Take(PassId pass, const Nodes& roots) {
  Nodes taken;
  MutexLock lock(mutex_);
  const autograd::Node* refused = nullptr;
  const auto take = [&](const std::shared_ptr<autograd::Node>& node)
                        ABSL_NO_THREAD_SAFETY_ANALYSIS {
                          const auto [found, is_new] =
                              taken_.emplace(node.get(), pass);
                          if (is_new) taken.push_back(node);
                          if (found->second != pass) refused = node.get();
                        };
  for (const auto& root : roots) take(root);
  for (size_t i = 0; i < taken.size() && refused == nullptr; ++i) {
    // Refer to the node, because `taken` grows in the loop.
    const autograd::Node& node = *taken[i];
    for (const autograd::Edge& edge : node.edges()) {
      if (edge.valid()) take(edge.node);
    }
  }
  if (refused == nullptr) return taken;
  for (const auto& node : taken) taken_.erase(node.get());
  return absl::FailedPreconditionError(absl::StrCat(
      "another backward of the context has not ended and uses ",
      Describe(*refused), ", too: wait for it, or use another context"));
}

void NodeClaims::GiveBack(const std::vector<const autograd::Node*>& nodes) {
  MutexLock lock(mutex_);
  for (const autograd::Node* node : nodes) taken_.erase(node);
}

}  // namespace baton::dist
