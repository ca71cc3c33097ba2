// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/shared_blocks.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/channel.h"

namespace baton::rpc {

namespace {

constexpr uint64_t kPage = 4096;
// How long a lease may wait to be released together with others.
constexpr std::chrono::milliseconds kReleaseDelay{1};

uint64_t PagesOf(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}

}  // namespace

void Arena::Add(uint32_t segment, uint64_t bytes) {
  gaps_[segment] = {{0, bytes}};
  sizes_[segment] = bytes;
  capacity_ += bytes;
}

std::optional<Arena::Block> Arena::Take(uint64_t bytes) {
  const uint64_t size = PagesOf(bytes);
  for (auto& [segment, gaps] : gaps_) {
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      const auto [offset, room] = *gap;
      if (room < size) continue;
      gaps.erase(gap);
      if (room > size) gaps.emplace(offset + size, room - size);
      return Block{segment, offset, bytes};
    }
  }
  return std::nullopt;
}

bool Arena::HasRoom(uint64_t bytes) const {
  const uint64_t size = PagesOf(bytes);
  return std::any_of(gaps_.begin(), gaps_.end(), [size](const auto& segment) {
    return std::any_of(segment.second.begin(), segment.second.end(),
                       [size](const auto& gap) { return gap.second >= size; });
  });
}

void Arena::Give(const Block& block) {
  Gaps& gaps = gaps_.at(block.segment);
  uint64_t offset = block.offset;
  uint64_t size = PagesOf(block.bytes);
  auto next = gaps.lower_bound(offset);
  if (next != gaps.end() && next->first == offset + size) {
    size += next->second;
    next = gaps.erase(next);
  }
  if (next != gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      gaps.erase(before);
    }
  }
  gaps.emplace(offset, size);
}

bool Arena::IsFree(uint32_t segment) const {
  const Gaps& gaps = gaps_.at(segment);
  return gaps.size() == 1 && gaps.begin()->second == sizes_.at(segment);
}

void Arena::Remove(uint32_t segment) {
  capacity_ -= sizes_.at(segment);
  sizes_.erase(segment);
  gaps_.erase(segment);
}

namespace {

bool IsAllOfItsStorage(const Tensor& tensor) {
  return tensor.nbytes() == tensor.storage()->bytes() &&
         tensor.IsContiguous(tensor.SuggestFormat());
}

}  // namespace

void ExportedBlocks::Add(uint32_t id, std::shared_ptr<Segment> segment) {
  MutexLock lock(mutex_);
  if (forgotten_) return;
  arena_.Add(id, segment->bytes());
  segments_[id] = std::move(segment);
  used_[id] = Clock::now();
}

void ExportedBlocks::GiveLocked(const Arena::Block& block) {
  arena_.Give(block);
  used_[block.segment] = Clock::now();
}

// Ids only grow.
bool ExportedBlocks::IsIdleLocked(uint32_t id, Clock::time_point before) const {
  return id != segments_.begin()->first && used_.at(id) <= before &&
         arena_.IsFree(id);
}

bool ExportedBlocks::HasIdle(Clock::time_point before) const {
  MutexLock lock(mutex_);
  for (const auto& [id, segment] : segments_) {
    if (IsIdleLocked(id, before)) return true;
  }
  return false;
}

ExportedBlocks::Segments ExportedBlocks::TakeIdle(Clock::time_point before) {
  Segments idle;
  MutexLock lock(mutex_);
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto next = std::next(it);
    if (const uint32_t id = it->first; IsIdleLocked(id, before)) {
      arena_.Remove(id);
      used_.erase(id);
      idle.insert(segments_.extract(it));
    }
    it = next;
  }
  return idle;
}

ExportedBlocks::Leased ExportedBlocks::LeaseLocked(const Arena::Block& block) {
  const uint64_t lease = next_lease_++;
  leases_[lease] = block;
  counts_.Lease(block.bytes);
  return {lease, block, segments_.at(block.segment)};
}

std::optional<ExportedBlocks::Leased> ExportedBlocks::Lease(uint64_t bytes) {
  MutexLock lock(mutex_);
  if (arena_.capacity() == 0) return std::nullopt;
  const auto block = arena_.Take(bytes);
  if (!block.has_value()) {
    ++counts_.declined;
    return std::nullopt;
  }
  return LeaseLocked(*block);
}

bool ExportedBlocks::GiveBack(uint64_t lease) {
  MutexLock lock(mutex_);
  if (forgotten_) return true;
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return false;
  counts_.GiveBack(found->second.bytes);
  GiveLocked(found->second);
  leases_.erase(found);
  return true;
}

Tensor ExportedBlocks::Make(const TensorSpec& spec) {
  struct End {
    std::weak_ptr<ExportedBlocks> blocks;
    std::shared_ptr<Segment> segment;
    uint64_t storage = 0;
  };
  const auto end = std::make_shared<End>();
  end->blocks = weak_from_this();
  std::shared_ptr<Storage> storage;
  {
    MutexLock lock(mutex_);
    const auto block = arena_.Take(spec.bytes);
    if (!block.has_value()) return {};
    end->segment = segments_.at(block->segment);
    storage = Storage::Wrap(end->segment->data() + block->offset, spec.bytes,
                            Device::Cpu(), [end] {
                              if (auto blocks = end->blocks.lock())
                                blocks->Drop(end->storage);
                            });
    end->storage = storage->id();
    made_[storage->id()] = *block;
    counts_.made_bytes += spec.bytes;
  }
  return DenseView(std::move(storage), spec);
}

std::optional<ExportedBlocks::Leased> ExportedBlocks::LeaseMade(
    Tensor& tensor) {
  if (tensor.storage().use_count() != 1 || !IsAllOfItsStorage(tensor)) {
    return std::nullopt;
  }
  Leased leased;
  {
    MutexLock lock(mutex_);
    const auto found = made_.find(tensor.storage()->id());
    if (found == made_.end()) return std::nullopt;
    leased = LeaseLocked(found->second);
    counts_.made_bytes -= found->second.bytes;
    ++counts_.sent_in_place;
    made_.erase(found);
  }
  // Destroying the tensor, unlike reading the count, also waits for what other
  // threads wrote before they dropped their handles.
  { [[maybe_unused]] const Tensor taken = std::move(tensor); }
  return leased;
}

void ExportedBlocks::Drop(uint64_t storage) {
  MutexLock lock(mutex_);
  const auto found = made_.find(storage);
  if (found == made_.end()) return;
  counts_.made_bytes -= found->second.bytes;
  GiveLocked(found->second);
  made_.erase(found);
}

ExportedBlocks::Segments ExportedBlocks::Forget() {
  MutexLock lock(mutex_);
  forgotten_ = true;
  arena_ = Arena();
  leases_.clear();
  made_.clear();
  counts_.Forget();
  return std::exchange(segments_, {});
}

bool ExportedBlocks::HasRoom(uint64_t bytes) const {
  MutexLock lock(mutex_);
  return arena_.HasRoom(bytes);
}

uint64_t ExportedBlocks::capacity() const {
  MutexLock lock(mutex_);
  return arena_.capacity();
}

SentTensors ExportedBlocks::counts() const {
  MutexLock lock(mutex_);
  SentTensors counts = counts_;
  counts.capacity_bytes = arena_.capacity();
  return counts;
}

namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

absl::Status ImportedBlocks::Add(uint32_t id,
                                 std::shared_ptr<Segment> segment) {
  MutexLock lock(mutex_);
  if (!segments_.emplace(id, std::move(segment)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment ", id, " for the second time"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ImportedBlocks::Import(const TensorSpec& spec,
                                              const Block& block) {
  std::shared_ptr<Segment> segment;
  {
    MutexLock lock(mutex_);
    const auto found = segments_.find(block.segment);
    if (found == segments_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor in the unknown segment ", block.segment));
    }
    segment = found->second;
    if (block.bytes != spec.bytes || block.offset % kAlignment != 0 ||
        block.offset > segment->bytes() ||
        block.bytes > segment->bytes() - block.offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tensor of ", spec.bytes, " bytes in ", block.bytes, " at ",
          block.offset, " of a segment of ", segment->bytes()));
    }
    if (!leases_.insert(block.lease).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the lease ", block.lease, " for the second time"));
    }
    counts_.Add(block.bytes);
  }
  std::byte* data = segment->data() + block.offset;
  auto storage = Storage::Wrap(
      data, block.bytes, Device::Cpu(),
      [self = shared_from_this(), segment, lease = block.lease]() mutable {
        segment = nullptr;
        self->Return(lease);
      });
  return CatchErrors([&]() -> absl::StatusOr<Tensor> {
    return DenseView(std::move(storage), spec);
  });
}

void ImportedBlocks::Close(uint32_t id) {
  std::shared_ptr<Segment> closed;  // after the lock, because it is slow
  MutexLock lock(mutex_);
  if (const auto found = segments_.find(id); found != segments_.end()) {
    closed = std::move(found->second);
    segments_.erase(found);
  }
}

void ImportedBlocks::Return(uint64_t lease) {
  {
    MutexLock lock(mutex_);
    leases_.erase(lease);
  }
  port_->Release(lease, kReleaseDelay);
}

void ImportedBlocks::Forget() {
  std::map<uint32_t, std::shared_ptr<Segment>> segments;
  MutexLock lock(mutex_);
  segments.swap(segments_);
}

ReceivedTensors ImportedBlocks::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace baton::rpc
