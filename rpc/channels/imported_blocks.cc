// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/imported_blocks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/channels/dense_view.h"

namespace baton::rpc {
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
  port_->Release(lease);
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
