// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "autograd/variable.h"
#include "core/tensor.h"

namespace baton::nn {

// Says when graphs are recorded.
struct RecordingOptions {
  // The number of calls on inputs of one kind, 1 or more, that run normally
  // before a recording of that kind is made. They select algorithms and create
  // the optimizer's state.
  int warm_up = 3;
  // The number of kinds that are recorded, those that first complete their
  // warm-up. Each recording has memory of its own.
  int kinds = 1;
  // For Graphed: the most replayed passes that may wait for their backward at
  // once. Each has memory for activations of its own.
  int passes = 1;
  static constexpr auto Fields =
      std::tuple{&RecordingOptions::warm_up, &RecordingOptions::kinds,
                 &RecordingOptions::passes};
};

// Returns the kind of the inputs that a recording can be replayed with: their
// shapes, memory orders, dtypes and devices.
std::string KindOf(const std::vector<Tensor>& inputs);

// The recordings of one function, by the kind of its inputs. They are valid as
// long as its parameters keep their memory. Thread-compatible.
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

  // Returns the recording for inputs of `kind`, which `make` makes after the
  // warm-up; null if the call must run normally. If one of the parameters has
  // moved, all recordings are dropped and warm-ups begin anew.
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
    // Inputs whose kind changes with each call never complete a warm-up.
    if (calls_.size() >= kCounted && calls_.count(kind) == 0) calls_.clear();
    if (calls_[kind]++ < options_.warm_up) return {};
    calls_.erase(kind);
    return recordings_.emplace(kind, make()).first->second;
  }

 private:
  static constexpr size_t kCounted = 64;

  const RecordingOptions options_;
  std::map<std::string, std::shared_ptr<Recording>> recordings_;
  std::map<std::string, int> calls_;  // on kinds that are not recorded yet
  std::vector<uint64_t> places_;      // of the parameters, by storage
};

}  // namespace baton::nn
