// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "core/executor.h"
#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/ipc_tensors.h"
#include "rpc/channels/poller.h"

namespace baton::rpc {

namespace wire {
class CudaIpcControl;
}  // namespace wire

// One end of CUDA IPC between two workers (rpc/wire.proto has its messages).
// The two directions open independently, each GPU of the sender by a proof.
// When the connection is lost, the sender keeps what the other process may
// still read for half a second, and then releases it.
class CudaIpcEnd final : public Channel,
                         public std::enable_shared_from_this<CudaIpcEnd> {
 public:
  // Slow work runs on `executor`, whose thread may block.
  CudaIpcEnd(std::shared_ptr<IpcGpu> gpu, IpcReach reach,
             std::shared_ptr<Poller> poller,
             std::shared_ptr<ThreadPool> executor,
             std::shared_ptr<ChannelPort> port);

  void Start() override;
  void OnControl(std::string payload) override;
  std::optional<Ticket> Export(const Tensor& tensor) override;
  void Withdraw(uint64_t lease) override;
  absl::StatusOr<Imported> Import(const TensorSpec& spec,
                                  const std::string& ticket) override;
  absl::Status OnReleased(uint64_t lease) override;
  void OnLost() override;
  TensorChannelInfo info() const override;

 private:
  void Post(Task task);
  void SendControl(const wire::CudaIpcControl& control);

  // These run on the executor.
  void Pass(const IpcExports::Need& need);
  void OnControlMessage(const wire::CudaIpcControl& control);
  void OnPassed(const wire::CudaIpcControl& control);
  void OnOpened(const wire::CudaIpcControl& control);
  void Refused(const std::string& why);
  // Closes segments that have been idle for long, so that their memory can be
  // used elsewhere.
  void CloseIdle();

  const std::weak_ptr<Poller> poller_;
  const std::weak_ptr<ThreadPool> executor_;
  const std::shared_ptr<ChannelPort> port_;
  const int own_;
  const std::shared_ptr<IpcExports> exports_;
  const std::shared_ptr<IpcImports> imports_;
  std::atomic<bool> started_{false};
  std::atomic<bool> open_{false};
};

// Makes the CUDA IPC channel, which carries GPU tensors between processes of
// one machine and user. Each process must have declared a GPU: both the same
// one, or any where both may reach all GPUs. The receiver opens the segments of
// the sender's caching allocator and copies each tensor once, from GPU to GPU,
// to the GPU that it has declared. The sender neither copies nor waits, but
// whoever writes the tensor there waits until it has been read. Segments and
// events are opened when they are first needed; the tensor that triggers this
// travels by other means. Where there is no GPU, Offer of the result returns
// the reason.
std::shared_ptr<ChannelKind> MakeCudaIpc(std::shared_ptr<IpcGpu> gpu,
                                         IpcReach reach);

}  // namespace baton::rpc
