// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"

namespace baton::sim {

// Counts what the trainers of a run push to its parameter servers, each to its
// own element of both halves, which different shards have, and checks what they
// read. Fails the run if an acknowledged push is missing, one counts twice, or
// a read of one version has it in one half only. Takes no lock. Used by the
// running thread.
class Tally {
 public:
  static constexpr int64_t kElements = 64, kHalf = kElements / 2;

  // Returns the element for a new trainer in that group; -1 if none is left.
  int64_t NewTrainer(int group);
  void Began(int64_t element) { ++counts_[element].begun; }
  // A push has ended; counts it if it was acknowledged.
  void Ended(int64_t element, const absl::Status& status);
  int64_t acknowledged(int64_t element) const {
    return counts_[element].acknowledged;
  }
  // Checks values that a trainer has read: no element may exceed what was
  // pushed, and its own must include all pushes acknowledged before the read
  // began.
  void CheckRead(const Tensor& values, int64_t element,
                 int64_t acknowledged) const;
  // Checks that both halves have the same pushes, unless a push has failed:
  // then one of them may lack it until its trainer pushes again.
  void CheckHalves(const Tensor& values) const;
  // Checks values that were read after the last fault.
  void CheckLast(const Tensor& values) const;

  // Lists the unfinished pushes of living trainers.
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
  bool has_failed_ = false;    // some push
};

}  // namespace baton::sim
