// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/nccl.h"
#include "rpc/channels/nccl_gpu.h"
#include "rpc/channels/nccl_lines.h"
#include "rpc/channels/nccl_receipts.h"
#include "rpc/channels/nccl_sends.h"
#include "rpc/channels/poller.h"

namespace baton::rpc {

namespace wire {
class NcclWords;
}  // namespace wire

// What all ends of a worker share.
struct NcclParts {
  std::shared_ptr<IpcGpu> gpu;
  std::shared_ptr<NcclGpu> nccl;
  std::shared_ptr<Poller> poller;
  std::shared_ptr<ThreadPool> executor;  // a thread that may be held up
  // How often tensors that were promised did not come, or could not be sent.
  std::shared_ptr<std::atomic<int>> breaks;
  NcclOptions options;
};

// One end of NCCL between two workers (rpc/wire.proto has what they say). Each
// way opens by a proof. On a loss what is under way may go on for half a
// second; then it is aborted, and what has not come is lost.
class NcclEnd final : public Channel,
                      public std::enable_shared_from_this<NcclEnd> {
 public:
  NcclEnd(const NcclParts& parts, bool dialed,
          std::shared_ptr<ChannelPort> port);

  void Start() override;
  void OnSaid(std::string words) override;
  std::optional<Ticket> Export(const Tensor& tensor) override;
  void Withdraw(uint64_t lease) override { sends_->Withdraw(lease); }
  absl::StatusOr<Tensor> Import(const TensorSpec& spec,
                                const std::string& ticket) override;
  // Leases end here, when the tensor has been sent.
  absl::Status OnReleased(uint64_t lease) override;
  void OnLost() override;
  TensorChannelInfo info() const override;

 private:
  using Clock = std::chrono::steady_clock;

  void Post(Task task);              // to the executor
  void Ask(Poller::Question asked);  // by the poller
  void Say(const wire::NcclWords& words);
  std::shared_ptr<NcclLines> lines() const;
  // What cannot go on: the opening, or else the connection.
  void Fail(const std::string& why, bool tell = true);

  // On the executor.
  void MakeLines();
  void Join(const std::string& out, const std::string& in);
  void Prove(const std::shared_ptr<NcclLines>& lines, Clock::time_point until);
  void SumUp(const Tensor& proof);

  // On the poller's thread.
  void OnWords(const wire::NcclWords& words);
  void OnSum(uint64_t sum);
  void OnAsk(uint64_t lease);
  void OnSent(uint64_t lease);
  void Send(uint64_t lease);
  // True with what comes of an opening that has failed, or that takes too long.
  bool IsOver(const absl::Status& status, Clock::time_point until);
  // `then` runs when so many posts of one of the lines have ended.
  void WhenEnded(std::shared_ptr<NcclLines> lines,
                 const std::shared_ptr<cuda::NcclLine>& line, uint64_t posts,
                 Task then);

  const std::shared_ptr<IpcGpu> gpu_;
  const std::shared_ptr<NcclGpu> nccl_;
  const std::weak_ptr<Poller> poller_;
  const std::weak_ptr<ThreadPool> executor_;
  const std::shared_ptr<std::atomic<int>> breaks_;
  const NcclOptions options_;
  const bool dialed_;
  const std::shared_ptr<ChannelPort> port_;
  const std::shared_ptr<NcclSends> sends_;
  const std::shared_ptr<NcclReceipts> receipts_;
  std::atomic<bool> started_{false};
  std::atomic<bool> open_{false};  // written under the mutex
  // The poller's thread's; the proofs are the first.
  uint64_t posted_out_ = 1, posted_in_ = 1;
  mutable Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;           // failed, or lost
  std::optional<uint64_t> sum_ ABSL_GUARDED_BY(mutex_);  // of the own proof
  std::shared_ptr<NcclLines> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
