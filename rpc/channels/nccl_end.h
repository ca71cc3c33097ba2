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
#include "rpc/channels/nccl_posts.h"
#include "rpc/channels/nccl_receipts.h"
#include "rpc/channels/nccl_sends.h"
#include "rpc/channels/nccl_traffic.h"
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
  // What follows a loss: it launches nothing, so that no launch holds it up.
  std::shared_ptr<Poller> rescuer;
  std::shared_ptr<ThreadPool> executor;  // a thread that may be held up
  // How often tensors that were promised did not come, or could not be sent.
  std::shared_ptr<std::atomic<int>> breaks;
  NcclOptions options;
  std::shared_ptr<NcclTraffic> traffic = std::make_shared<NcclTraffic>();
};

// One end of NCCL between two workers (rpc/wire.proto has what they say). Their
// lines open one after the other, each with a proof, when it is this pair's
// turn at both. On a loss what is under way may go on for half a second; then
// it is aborted, and what has not come is lost.
class NcclEnd final : public Channel,
                      public std::enable_shared_from_this<NcclEnd> {
 public:
  // One of the two leads: of all workers, in one order.
  NcclEnd(const NcclParts& parts, bool leads,
          std::shared_ptr<ChannelPort> port);

  void Start() override;
  void OnSaid(std::string words) override;
  std::optional<Ticket> Export(const Tensor& tensor) override;
  void Withdraw(uint64_t lease) override { sends_->Withdraw(lease); }
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const std::string& ticket) override;
  // Leases end here, when the tensor has been sent.
  absl::Status OnReleased(uint64_t lease) override;
  void OnLost() override;
  TensorChannelInfo info() const override;

 private:
  using Clock = std::chrono::steady_clock;

  // What NCCL calls the lines: to who is led, proved first, and back.
  struct LineIds {
    std::string there, back;
  };
  // What an end is at. Who is led has nothing of its own to wait for but its
  // turn; each waits for the other's, and for what it has sent to end.
  enum class Stage { kIdle, kOwnTurn, kTheirTurn, kQuiet, kJoining, kDone };

  void Post(Task task);              // to the executor
  void Ask(Poller::Question asked);  // by the poller
  void Say(const wire::NcclWords& words);
  std::shared_ptr<NcclLines> lines() const;
  bool ended() const;
  // What cannot go on: the opening, or else the connection.
  void Fail(const std::string& why, bool tell = true);

  // Opening (nccl_opening.cc), on the poller's thread.
  void OnBegin();
  void OnTurn();
  void OnLines(const LineIds& ids);
  void OnSum(uint64_t sum);
  void SayTurn();
  void TakeTurn(Task then);
  // Holds the worker's sends until lines are open; `then` when none is left.
  void BeQuiet(Task then);
  // Fails what is still at a stage after so long.
  void Watch(Stage stage, std::chrono::milliseconds limit,
             const std::string& why);
  void Prove(bool there, const LineIds& ids,
             const std::shared_ptr<cuda::NcclLine>& line);
  void PostProof(bool there, const LineIds& ids,
                 const std::shared_ptr<cuda::NcclLine>& line,
                 const Tensor& proof);
  void Opened();
  void MayExport();
  // And on the executor.
  void MakeLines();
  void OpenLine(bool there, const LineIds& ids);
  absl::StatusOr<Tensor> MakeProof(bool sends);
  void SumUp(const Tensor& proof);

  // On the poller's thread.
  void OnWords(const wire::NcclWords& words);
  void OnAsk(uint64_t lease);
  void OnSent(uint64_t lease);
  void SendBeside(uint64_t lease, NcclTraffic::Token token);
  void PostTo(const std::shared_ptr<NcclPosts>& posts, const Tensor& tensor,
              Task given, Task ended);

  const std::shared_ptr<IpcGpu> gpu_;
  const std::shared_ptr<NcclGpu> nccl_;
  const std::weak_ptr<Poller> poller_, rescuer_;
  const std::weak_ptr<ThreadPool> executor_;
  const std::shared_ptr<std::atomic<int>> breaks_;
  const NcclOptions options_;
  const std::shared_ptr<NcclTraffic> traffic_;
  const bool leads_;
  const std::shared_ptr<ChannelPort> port_;
  const std::shared_ptr<NcclSends> sends_;
  const std::shared_ptr<NcclReceipts> receipts_;
  std::atomic<bool> started_{false};
  std::atomic<bool> open_{false};  // written under the mutex
  // The poller's thread's; the proofs are the first.
  Stage stage_ = Stage::kIdle;
  std::shared_ptr<NcclPosts> out_, in_;
  bool proved_ = false;  // that the other end gets what is sent
  mutable Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;           // failed, or lost
  std::optional<uint64_t> sum_ ABSL_GUARDED_BY(mutex_);  // of the own proof
  std::shared_ptr<NcclLines> lines_ ABSL_GUARDED_BY(mutex_);
  // Until the lines are open.
  NcclTraffic::Token turn_ ABSL_GUARDED_BY(mutex_);
  NcclTraffic::Token hold_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
