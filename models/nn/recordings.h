// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/tensor.h"

namespace baton::nn {

// When graphs are recorded.
struct RecordingOptions {
  // Calls on inputs of one kind that run as they are before a recording of that
  // kind is made; 1 or more. They choose algorithms and make optimizer state.
  int warm_up = 3;
  // Kinds that are recorded, each with memory of its own: the first to be warm.
  int kinds = 1;
};

// What a recording is good for: inputs of this shape, order, dtype and device.
std::string KindOf(const std::vector<Tensor>& inputs);

// The recordings of one function, by the kind of its inputs.
// Thread-compatible.
template <typename Recording>
class Recordings {
 public:
  explicit Recordings(const RecordingOptions& options) : options_(options) {
    Require(options.warm_up > 0 && options.kinds > 0, "graphed",
            "expected at least one call to warm up and one kind, got ",
            options.warm_up, " and ", options.kinds);
  }

  // The recording for inputs of `kind`, which `make` makes when it is due; null
  // for a call that is to run as it is.
  std::shared_ptr<Recording> For(
      const std::string& kind,
      absl::FunctionRef<std::shared_ptr<Recording>()> make) {
    const auto found = recordings_.find(kind);
    if (found != recordings_.end()) return found->second;
    if (recordings_.size() >= static_cast<size_t>(options_.kinds)) return {};
    // Inputs that are of another kind each time are never warm.
    if (calls_.size() >= kCounted && calls_.count(kind) == 0) calls_.clear();
    if (calls_[kind]++ < options_.warm_up) return {};
    calls_.erase(kind);
    return recordings_.emplace(kind, make()).first->second;
  }

  const std::map<std::string, std::shared_ptr<Recording>>& all() const {
    return recordings_;
  }
  // Anew, with new warm-ups.
  void Clear() {
    recordings_.clear();
    calls_.clear();
  }

 private:
  static constexpr size_t kCounted = 64;

  const RecordingOptions options_;
  std::map<std::string, std::shared_ptr<Recording>> recordings_;
  std::map<std::string, int> calls_;  // of kinds that are not recorded
};

}  // namespace baton::nn
