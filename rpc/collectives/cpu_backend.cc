// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/collectives/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/cpu/combine.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

// Up to this many bytes and members an all_reduce is a direct exchange, because
// there a round trip costs more than moving the elements.
constexpr size_t kLittle = 4096;
constexpr int kFewMembers = 8;

// Parts are small enough for several to be under way, and large enough to be
// worth a wake-up.
constexpr int64_t kPartsAtLeast = 8;
constexpr int64_t kLeastPart = 8192;
constexpr int64_t kLine = 64;

BinaryOp OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return BinaryOp::kAdd;
    case ReduceOp::kMin:
      return BinaryOp::kMinimum;
    case ReduceOp::kMax:
      return BinaryOp::kMaximum;
    case ReduceOp::kProduct:
      return BinaryOp::kMul;
  }
  return BinaryOp::kAdd;
}

uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// Returns a hash of everything that must be equal at all members.
uint64_t TagOf(const CollectiveWork& work) {
  const Collective& what = work.what;
  uint64_t tag = Mixed(1, work.sequence);
  for (const uint64_t word :
       {static_cast<uint64_t>(what.kind), static_cast<uint64_t>(what.op),
        static_cast<uint64_t>(what.dtype), static_cast<uint64_t>(what.count),
        static_cast<uint64_t>(what.root), static_cast<uint64_t>(what.format)})
    tag = Mixed(tag, word);
  for (const int64_t size : what.sizes)
    tag = Mixed(tag, static_cast<uint64_t>(size));
  return tag;
}

int64_t RoundedUp(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace

CpuBackend::Task CpuBackend::TaskOf(const CollectiveWork& work) const {
  Task task;
  task.terms = {.tag = TagOf(work),
                .dtype = work.what.dtype,
                .op = OpOf(work.what.op),
                .deadline = work.deadline};
  task.count = work.what.count;
  task.element = SizeOf(work.what.dtype);
  task.root = work.what.root;
  if (work.what.op == ReduceOp::kMean) task.scale = 1.0 / members_;
  if (work.in.defined())
    task.in = static_cast<const std::byte*>(work.in.raw_data());
  if (work.out.defined())
    task.out = static_cast<std::byte*>(work.out.raw_data());
  return task;
}

absl::Status CpuBackend::CarrySeveral(const CollectiveWork& work) {
  const Tensor all =
      Tensor::Empty({work.what.count}, {.dtype = work.what.dtype});
  auto* const flat = static_cast<std::byte*>(all.raw_data());
  const auto for_each = [&](auto copy) {
    std::byte* at = flat;
    for (const Tensor& each : work.several) {
      if (each.nbytes() == 0) continue;
      copy(at, static_cast<std::byte*>(each.raw_data()), each.nbytes());
      at += each.nbytes();
    }
  };
  const bool broadcast = work.what.kind == CollectiveKind::kBroadcast;
  if (!broadcast || work.what.root == rank_) {
    for_each([](std::byte* to, const std::byte* from, size_t bytes) {
      std::memcpy(to, from, bytes);
    });
  }
  CollectiveWork as_one = work;
  as_one.several.clear();
  as_one.in = as_one.out = all;
  RETURN_IF_ERROR(Carry(as_one));
  if (!broadcast || work.what.root != rank_) {
    for_each([](const std::byte* from, std::byte* to, size_t bytes) {
      std::memcpy(to, from, bytes);
    });
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::Carry(const CollectiveWork& work) {
  if (!work.several.empty()) return CarrySeveral(work);
  Task task = TaskOf(work);
  std::byte token{};
  switch (work.what.kind) {
    case CollectiveKind::kAllReduce:
      return AllReduce(task);
    case CollectiveKind::kBroadcast:
      return Broadcast(task);
    case CollectiveKind::kReduce:
      return Reduce(task);
    case CollectiveKind::kAllGather:
      return AllGather(task);
    case CollectiveKind::kReduceScatter:
      return ReduceScatter(task);
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAllToAll:
      return MoveBlocks(task, work.what.kind);
    case CollectiveKind::kBarrier:
      task.terms.dtype = DType::kU8;
      task.count = 1;
      task.element = 1;
      task.in = task.out = &token;
      return AllReduce(task);
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kReplay:
      break;
  }
  return absl::UnimplementedError("no such collective");
}

int64_t CpuBackend::PartOf(const Task& task, int64_t count) const {
  const int64_t slot =
      static_cast<int64_t>(queues_.size().slot_bytes / task.element);
  return std::clamp(RoundedUp(count / kPartsAtLeast, kLine),
                    std::min(kLeastPart, slot), slot);
}

absl::Status CpuBackend::ForParts(
    const Task& task, int64_t count,
    absl::FunctionRef<absl::Status(int64_t, int64_t)> fn) const {
  const int64_t part = PartOf(task, count);
  for (int64_t begin = 0; begin < count; begin += part)
    RETURN_IF_ERROR(fn(begin, std::min(part, count - begin)));
  return absl::OkStatus();
}

// Part p is at stage s in round p + s. Within a round, later parts, which are
// at earlier stages, come first. So a member receives in one round what its
// neighbor sent in the round before, in the same order, and never waits for a
// chunk that is sent in the same round. If the queues have too few slots for
// the chunks of two rounds, the parts are processed one after the other.
absl::Status CpuBackend::Around(
    int64_t parts, int stages,
    absl::FunctionRef<absl::Status(int64_t, int)> fn) const {
  if (queues_.size().slots < 2 * stages) {
    for (int64_t part = 0; part < parts; ++part)
      for (int stage = 0; stage < stages; ++stage)
        RETURN_IF_ERROR(fn(part, stage));
    return absl::OkStatus();
  }
  for (int64_t round = 0; round < parts + stages - 1; ++round) {
    for (int stage = 0; stage < stages; ++stage) {
      const int64_t part = round - stage;
      if (part >= 0 && part < parts) RETURN_IF_ERROR(fn(part, stage));
    }
  }
  return absl::OkStatus();
}

// In stages 0 to n - 1 each block travels around the ring, and each member
// combines its own elements into it; at stage n - 1 it is complete, at the
// member whose rank is the block's index. In stages n to 2n - 2 the complete
// block travels around unchanged.
absl::Status CpuBackend::AllReduce(const Task& task) {
  const int n = members_;
  const size_t bytes = task.Bytes(task.count);
  if (n == 1) {
    if (task.in != task.out) std::memcpy(task.out, task.in, bytes);
    return absl::OkStatus();
  }
  if (bytes <= kLittle && n <= kFewMembers) return Exchange(task);
  const int64_t block = PartOf(task, RoundedUp(task.count, n) / n);
  const int64_t span = block * n;
  const int64_t parts = RoundedUp(task.count, span) / span;
  return Around(parts, 2 * n - 1, [&](int64_t part, int stage) {
    const int64_t first = part * span;
    const int64_t size = std::min(span, task.count - first);
    const int64_t share = RoundedUp(RoundedUp(size, n) / n, kLine);
    const int which = Ahead(stage < n ? -1 - stage : n - 1 - stage);
    const int64_t begin = std::min(which * share, size);
    const bool reduces = stage < n;
    SlotStep step;
    step.count = std::min(share, size - begin);
    if (stage > 0) step.from = previous();
    if (stage < 2 * n - 2) step.to = next();
    if (reduces) step.own = task.In(first + begin);
    if (stage >= n - 1) step.keep = task.Out(first + begin);
    return queues_.Move(task.terms, step, stage == n - 1 ? task.scale : 1);
  });
}

absl::Status CpuBackend::Exchange(const Task& task) {
  for (int ahead = 1; ahead < members_; ++ahead) {
    RETURN_IF_ERROR(queues_.Move(
        task.terms, {.to = Ahead(ahead), .own = task.in, .count = task.count}));
  }
  std::vector<std::byte> others(task.Bytes(task.count));
  std::vector<std::byte> own(task.in, task.in + others.size());
  for (int rank = 0; rank < members_; ++rank) {
    const std::byte* add = own.data();
    if (rank != rank_) {
      RETURN_IF_ERROR(queues_.Move(
          task.terms,
          {.from = rank, .keep = others.data(), .count = task.count}));
      add = others.data();
    }
    if (rank == 0) {
      std::memcpy(task.out, add, others.size());
      continue;
    }
    cpu::Combine(task.terms.op, task.terms.dtype, task.count, task.out, add,
                 rank == members_ - 1 ? task.scale : 1, task.out, nullptr);
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::Broadcast(const Task& task) {
  SlotStep step;
  if (rank_ != task.root) step.from = previous();
  if (next() != task.root) step.to = next();
  return ForParts(task, task.count, [&](int64_t begin, int64_t size) {
    if (rank_ == task.root) step.own = task.In(begin);
    step.keep = task.Out(begin);
    step.count = size;
    return queues_.Move(task.terms, step);
  });
}

// Chunks travel around the ring from the member after the root to the root.
absl::Status CpuBackend::Reduce(const Task& task) {
  SlotStep step;
  if (previous() != task.root || rank_ == task.root) step.from = previous();
  if (rank_ != task.root) step.to = next();
  if (members_ == 1) step.from = SlotStep::kNobody;
  return ForParts(task, task.count, [&](int64_t begin, int64_t size) {
    step.own = task.In(begin);
    if (rank_ == task.root) step.keep = task.Out(begin);
    step.count = size;
    return queues_.Move(task.terms, step, rank_ == task.root ? task.scale : 1);
  });
}

absl::Status CpuBackend::AllGather(const Task& task) {
  const int64_t block = PartOf(task, task.count);
  const int64_t parts = RoundedUp(task.count, block) / block;
  return Around(parts, members_, [&](int64_t part, int stage) {
    const int64_t begin = part * block;
    SlotStep step;
    step.count = std::min(block, task.count - begin);
    step.keep = task.Out(Ahead(-stage) * task.count + begin);
    if (stage == 0) step.own = task.In(begin);
    if (stage > 0) step.from = previous();
    if (stage < members_ - 1) step.to = next();
    return queues_.Move(task.terms, step);
  });
}

absl::Status CpuBackend::ReduceScatter(const Task& task) {
  const int64_t block = PartOf(task, task.count);
  const int64_t parts = RoundedUp(task.count, block) / block;
  return Around(parts, members_, [&](int64_t part, int stage) {
    const int64_t begin = part * block;
    const bool last = stage == members_ - 1;
    SlotStep step;
    step.count = std::min(block, task.count - begin);
    step.own = task.In(Ahead(-1 - stage) * task.count + begin);
    if (stage > 0) step.from = previous();
    if (last) {
      step.keep = task.Out(begin);
    } else {
      step.to = next();
    }
    return queues_.Move(task.terms, step, last ? task.scale : 1);
  });
}

// Block i of the input goes to rank i, and block i of the output comes from
// rank i. A member sends one block to a root, or receives one from it.
absl::Status CpuBackend::MoveBlocks(const Task& task, CollectiveKind kind) {
  const bool gathers = kind == CollectiveKind::kGather;
  const bool scatters = kind == CollectiveKind::kScatter;
  const bool is_root = rank_ == task.root;
  return ForParts(task, task.count, [&](int64_t begin, int64_t size) {
    const auto in = [&](int rank) {
      return task.In((gathers ? 0 : rank * task.count) + begin);
    };
    const auto out = [&](int rank) {
      return task.Out((scatters ? 0 : rank * task.count) + begin);
    };
    for (int ahead = 1; ahead < members_; ++ahead) {
      const int to = Ahead(ahead);
      if (gathers ? to != task.root : scatters && !is_root) continue;
      RETURN_IF_ERROR(
          queues_.Move(task.terms, {.to = to, .own = in(to), .count = size}));
    }
    if (is_root || !(gathers || scatters))
      std::memcpy(out(rank_), in(rank_), task.Bytes(size));
    for (int ahead = 1; ahead < members_; ++ahead) {
      const int from = Ahead(-ahead);
      if (scatters ? from != task.root : gathers && !is_root) continue;
      RETURN_IF_ERROR(queues_.Move(
          task.terms, {.from = from, .keep = out(from), .count = size}));
    }
    return absl::OkStatus();
  });
}

}  // namespace baton::rpc
