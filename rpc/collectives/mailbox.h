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

// A tensor that one member of a group sends to another. Plain data.
struct TaggedTensor {
  uint64_t from = 0;  // the sender's ticket
  int32_t tag = 0;
  uint64_t number = 0;  // from 0, for each sender, receiver and tag
  Tensor tensor;

  static constexpr auto Fields() {
    return std::tuple{&TaggedTensor::from, &TaggedTensor::tag,
                      &TaggedTensor::number, &TaggedTensor::tensor};
  }
};

// Matches sent tensors with the calls that receive them: for each sender and
// tag, the n-th one goes to the n-th Receive. Thread-safe.
class MemberMailbox {
 public:
  // Both futures become OK once the tensor has been received. Both fail with
  // InvalidArgument if its shape or dtype differs from `into`'s.
  Future<void> Deliver(TaggedTensor sent);
  Future<void> Receive(uint64_t from, int32_t tag, const Tensor& into);
  // Makes all waiting and later calls fail with `why`; FailFrom only receives
  // from that member, unless what it has sent has arrived.
  void Fail(const absl::Status& why);
  void FailFrom(uint64_t from, const absl::Status& why);

 private:
  using Key = std::tuple<uint64_t, int32_t, uint64_t>;  // from, tag, number
  struct Half {
    Tensor tensor;
    Promise<void> done;
  };
  using Halves = std::map<Key, Half>;
  // Completes both halves if the other one is there, else stores this one.
  Future<void> Meet(const Key& key, const Tensor& tensor, bool is_sent);

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<uint64_t, int32_t>, uint64_t> asked_
      ABSL_GUARDED_BY(mutex_);
  Halves sent_ ABSL_GUARDED_BY(mutex_);
  Halves receives_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
