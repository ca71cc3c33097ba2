// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "rpc/collectives/backend.h"
#include "rpc/collectives/slot_queues.h"

namespace baton::rpc {

// Runs collectives of CPU tensors over the queues between the members. Large
// tensors go around a ring in parts, several of which are under way at once if
// the queues have enough slots. Each element is reduced by one member, so that
// all members get the same bits. For a small all_reduce every member sends its
// elements to all others, and each reduces them in the order of the ranks. Sums
// of bf16 and f16 are rounded at each member.
class CpuBackend final : public CollectiveBackend {
 public:
  CpuBackend(int rank, std::vector<SlotQueues::Ends> ends, SlotQueueSize size,
             std::shared_ptr<FutexEvent> wakeup)
      : rank_(rank),
        members_(static_cast<int>(ends.size())),
        queues_(std::move(ends), size, std::move(wakeup)) {}

  std::string name() const override { return "cpu"; }
  bool Takes(Device device) const override { return !device.is_cuda(); }
  bool waits() const override { return true; }
  Future<void> Run(const CollectiveWork& work) override {
    return ReadyFuture<void>(Carry(work));
  }
  void Abort(const absl::Status& why) override { queues_.Abort(why); }
  void Leave(int rank, const absl::Status& why) override {
    queues_.Leave(rank, why);
  }

 private:
  // A collective under way, with its tensors as bytes.
  struct Task {
    SlotQueues::Terms terms;
    int64_t count = 0;  // as in Collective
    size_t element = 0;
    int root = 0;
    double scale = 1;  // applied by the last combination
    const std::byte* in = nullptr;
    std::byte* out = nullptr;

    const std::byte* In(int64_t i) const { return in + Bytes(i); }
    std::byte* Out(int64_t i) const { return out + Bytes(i); }
    size_t Bytes(int64_t i) const { return static_cast<size_t>(i) * element; }
  };

  absl::Status Carry(const CollectiveWork& work);
  // Copies several tensors into one, and carries that.
  absl::Status CarrySeveral(const CollectiveWork& work);
  Task TaskOf(const CollectiveWork& work) const;
  absl::Status AllReduce(const Task& task);
  absl::Status Exchange(const Task& task);
  absl::Status Broadcast(const Task& task);
  absl::Status Reduce(const Task& task);
  absl::Status AllGather(const Task& task);
  absl::Status ReduceScatter(const Task& task);
  // Carries out gather, scatter and all_to_all.
  absl::Status MoveBlocks(const Task& task, CollectiveKind kind);

  // Returns the rank `places` after this one on the ring.
  int Ahead(int places) const {
    return ((rank_ + places) % members_ + members_) % members_;
  }
  int next() const { return Ahead(1); }
  int previous() const { return Ahead(-1); }
  // Returns how many elements of `count` make one part; a slot holds a part.
  int64_t PartOf(const Task& task, int64_t count) const;
  // Calls fn(begin, size) for the parts of [0, count).
  absl::Status ForParts(
      const Task& task, int64_t count,
      absl::FunctionRef<absl::Status(int64_t begin, int64_t size)> fn) const;
  // Calls fn(part, stage) for all parts and stages, in an order in which each
  // member receives the chunks as the previous member sends them.
  absl::Status Around(
      int64_t parts, int stages,
      absl::FunctionRef<absl::Status(int64_t part, int stage)> fn) const;

  const int rank_;
  const int members_;
  SlotQueues queues_;
};

}  // namespace baton::rpc
