// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace baton::rpc {

// A tensor that one member of a group sends another. Plain data.
struct Letter {
  uint64_t from = 0;  // the sender's ticket
  int32_t tag = 0;
  uint64_t number = 0;  // from 0, of this sender, receiver and tag
  Tensor tensor;

  static constexpr auto Fields() {
    return std::tuple{&Letter::from, &Letter::tag, &Letter::number,
                      &Letter::tensor};
  }
};

// Where letters and those who wait for them meet, in the order in which they
// were sent and asked for. Thread-safe.
class MemberMailbox {
 public:
  // OK once it has been received; InvalidArgument, there too, for a tensor of
  // another shape or dtype than the one that it is received into.
  Future<void> Deliver(Letter letter);
  Future<void> Receive(uint64_t from, int32_t tag, const Tensor& into);
  // What waits, and what comes, fails with `why`; or what waits for one member.
  void Fail(const absl::Status& why);
  void FailFrom(uint64_t from, const absl::Status& why);

 private:
  using Key = std::tuple<uint64_t, int32_t, uint64_t>;  // from, tag, number
  struct Half {
    Tensor tensor;
    Promise<void> done;
  };
  using Halves = std::map<Key, Half>;
  // With the other half, if that is there already.
  Future<void> Meet(const Key& key, const Tensor& tensor, bool is_letter);

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<uint64_t, int32_t>, uint64_t> asked_
      ABSL_GUARDED_BY(mutex_);
  Halves letters_ ABSL_GUARDED_BY(mutex_);
  Halves receives_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
