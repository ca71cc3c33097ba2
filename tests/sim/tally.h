// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"

namespace baton::sim {

// What the trainers of a run have pushed to its parameter servers, each to an
// element of its own, and what a read may therefore say: fails the run where a
// push that was acknowledged is missing, or one counts twice. Takes no lock.
// Used by the thread that runs.
class Tally {
 public:
  static constexpr int64_t kElements = 64;

  // Returns the element of one more trainer, in that group; -1 if there is none
  // left.
  int64_t NewTrainer(int group);
  void Began(int64_t element) { ++counts_[element].begun; }
  // Counts a push that was acknowledged.
  void Ended(int64_t element, const absl::Status& status);
  int64_t acknowledged(int64_t element) const {
    return counts_[element].acknowledged;
  }
  // Checks values that a trainer has read: no more than was pushed, and of its
  // own element no less than was acknowledged when it began to read.
  void CheckRead(const Tensor& values, int64_t element,
                 int64_t acknowledged) const;
  // Checks values that were read when nothing was wrong any more.
  void CheckLast(const Tensor& values) const;

  // The pushes of living trainers that have not ended, in words.
  std::string OpenPushes() const;

 private:
  struct Count {
    int group = 0;
    int64_t begun = 0;
    int64_t ended = 0;
    int64_t acknowledged = 0;
  };
  void CheckElement(const Tensor& values, int64_t element, int64_t least) const;

  std::vector<Count> counts_;  // by element
};

}  // namespace baton::sim
