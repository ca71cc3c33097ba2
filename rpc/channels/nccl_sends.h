// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/stream_use.h"
#include "core/tensor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/nccl_gpu.h"
#include "rpc/channels/nccl_traffic.h"

namespace baton::rpc {

// Tensors of this GPU that one peer may ask for, whose storages it holds until
// they have been sent. A tensor is not copied: writers here wait until then.
// Thread-safe.
class NcclSends {
 public:
  NcclSends(std::shared_ptr<IpcGpu> gpu, std::shared_ptr<NcclGpu> nccl,
            std::shared_ptr<NcclTraffic> traffic)
      : gpu_(std::move(gpu)),
        nccl_(std::move(nccl)),
        traffic_(std::move(traffic)) {}
  ~NcclSends() { GiveUp(); }

  // Nothing while the worker's sends are held: it would wait for other lines.
  std::optional<Ticket> Export(const Tensor& tensor);
  // Nobody was told of it.
  void Withdraw(uint64_t lease);
  // What to ask until it is written, and may be sent. InvalidArgument for a
  // lease that is not out, or was asked for before.
  absl::StatusOr<Poller::Question> OnAsk(uint64_t lease);
  // Begins to send it; nothing after a loss. The token stays until it has been
  // sent, or nobody is to wait for that any more.
  std::optional<Tensor> Begin(uint64_t lease, NcclTraffic::Token token);
  // It has been sent.
  void End(uint64_t lease);

  // Nothing more is exported, or begun.
  // What it lets go of, which may take long to drop.
  std::shared_ptr<void> Lose();
  // Those that are being sent will be aborted.
  void Forsake();
  // Those that are being sent.
  std::vector<Tensor> under_way() const;
  // They may be written again.
  void GiveUp();

  SentTensors counts() const;

 private:
  enum class State { kOut, kAsked, kUnderWay };
  struct Lease {
    State state = State::kOut;
    Tensor tensor = {};
    Poller::Question written = nullptr;
    std::shared_ptr<OutsideRead> read = nullptr;
    NcclTraffic::Token token = nullptr;
  };
  bool Takes(const Tensor& tensor) const;
  std::nullopt_t DeclineLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(uint64_t lease, bool only_out);

  const std::shared_ptr<IpcGpu> gpu_;
  const std::shared_ptr<NcclGpu> nccl_;
  const std::shared_ptr<NcclTraffic> traffic_;
  mutable Mutex mutex_;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  SentTensors counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
