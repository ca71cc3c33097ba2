// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/exported_blocks.h"

#include <iterator>
#include <utility>

#include "rpc/channels/dense_view.h"

namespace baton::rpc {
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

}  // namespace baton::rpc
