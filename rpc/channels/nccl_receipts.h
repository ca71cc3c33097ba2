// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/nccl_gpu.h"

namespace baton::rpc {

namespace wire {
class NcclTicket;
}  // namespace wire

// Tensors that one peer has promised, and for which there is memory of this
// GPU. Trusts nothing that it was told. Thread-safe.
class NcclReceipts {
 public:
  explicit NcclReceipts(std::shared_ptr<NcclGpu> nccl)
      : nccl_(std::move(nccl)) {}
  ~NcclReceipts() { GiveUp(); }

  // The tensor, which must be asked for and may be used once its receive has
  // been given to the GPU. InvalidArgument for a ticket that makes no sense, or
  // beside more than an honest sender has out.
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const wire::NcclTicket& ticket);
  // It comes now. InvalidArgument unless it was promised and did not come yet.
  absl::StatusOr<Tensor> Begin(uint64_t lease);
  // The GPU has been given what receives it.
  void Give(uint64_t lease);
  // It has come.
  void End(uint64_t lease);

  // No new tensors, and none that is not coming yet.
  void Lose();
  // Those that are coming now.
  std::vector<Tensor> under_way() const;
  // Those that have not come will not.
  void GiveUp();

  ReceivedTensors counts() const;

 private:
  struct Receipt {
    Tensor tensor = {};  // none while its memory is made
    uint64_t bytes = 0;
    Promise<void> given = Promise<void>();
    bool under_way = false;
  };
  absl::Status Reserve(const TensorSpec& spec, uint64_t lease);

  const std::shared_ptr<NcclGpu> nccl_;
  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, Receipt> receipts_ ABSL_GUARDED_BY(mutex_);
  uint64_t awaited_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  ReceivedTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
