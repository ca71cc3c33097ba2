// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

// The segments of one peer that this process has mapped, and the tensors in
// them. A segment stays mapped while a tensor lies in it, whatever happens to
// this object, the connection and the peer. Thread-safe.
class ImportedBlocks : public std::enable_shared_from_this<ImportedBlocks> {
 public:
  explicit ImportedBlocks(std::shared_ptr<ChannelPort> port)
      : port_(std::move(port)) {}

  // InvalidArgument for an id that is in use.
  absl::Status Add(uint32_t id, std::shared_ptr<Segment> segment);
  // No new tensors are imported from this segment.
  void Close(uint32_t id);
  struct Block {
    uint32_t segment = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t lease = 0;
  };
  // InvalidArgument unless the block lies within a segment and has the tensor's
  // size, and its lease is new.
  absl::StatusOr<Tensor> Import(const TensorSpec& spec, const Block& block);

  // No new tensors are imported. Unmaps the segments that hold none.
  void Forget();

  ReceivedTensors counts() const;

 private:
  void Return(uint64_t lease);

  const std::shared_ptr<ChannelPort> port_;
  mutable Mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Segment>> segments_
      ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> leases_ ABSL_GUARDED_BY(mutex_);
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
