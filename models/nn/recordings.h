// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "autograd/variable.h"
#include "core/tensor.h"

namespace baton::nn {

// When graphs are recorded.
struct RecordingOptions {
  // Calls on inputs of one kind that run as they are before a recording of that
  // kind is made; 1 or more. They choose algorithms and make optimizer state.
  int warm_up = 3;
  // Kinds that are recorded, each with memory of its own: the first to be warm.
  int kinds = 1;
  // Of a Graphed: passes whose backward is still to come that are replayed at
  // most, each with memory for activations of its own.
  int passes = 1;
};

// What a recording is good for: inputs of this shape, order, dtype and device.
std::string KindOf(const std::vector<Tensor>& inputs);

// The recordings of one function, by the kind of its inputs. They are good for
// as long as its parameters keep their memory. Thread-compatible.
template <typename Recording>
class Recordings {
 public:
  explicit Recordings(const RecordingOptions& options) : options_(options) {
    Require(
        options.warm_up > 0 && options.kinds > 0 && options.passes > 0,
        "graphed",
        "expected at least one call to warm up, one kind and one pass, got ",
        options.warm_up, ", ", options.kinds, " and ", options.passes);
  }

  // The recording for inputs of `kind`, which `make` makes when it is due; null
  // for a call that is to run as it is. Where one of the parameters has moved
  // all begin anew, with new warm-ups.
  std::shared_ptr<Recording> For(
      const std::string& kind, const std::vector<Variable>& parameters,
      absl::FunctionRef<std::shared_ptr<Recording>()> make) {
    std::vector<uint64_t> places;
    for (const Variable& parameter : parameters)
      places.push_back(parameter.tensor().storage()->id());
    if (places != places_) {
      recordings_.clear();
      calls_.clear();
      places_ = std::move(places);
    }
    const auto found = recordings_.find(kind);
    if (found != recordings_.end()) return found->second;
    if (recordings_.size() >= static_cast<size_t>(options_.kinds)) return {};
    // Inputs that are of another kind each time are never warm.
    if (calls_.size() >= kCounted && calls_.count(kind) == 0) calls_.clear();
    if (calls_[kind]++ < options_.warm_up) return {};
    calls_.erase(kind);
    return recordings_.emplace(kind, make()).first->second;
  }

 private:
  static constexpr size_t kCounted = 64;

  const RecordingOptions options_;
  std::map<std::string, std::shared_ptr<Recording>> recordings_;
  std::map<std::string, int> calls_;  // of kinds that are not recorded
  std::vector<uint64_t> places_;      // of the parameters, by storage
};

}  // namespace baton::nn
