// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/channel_kinds.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/channels/cuda_ipc.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/shared_memory.h"

namespace baton::rpc {
namespace {

// Nothing where it is turned off.
std::optional<IpcReach> ReachFromEnvironment() {
  static const std::optional<IpcReach> reach = []() -> std::optional<IpcReach> {
    const char* set = std::getenv("BATON_CUDA_IPC");
    const std::string value = set == nullptr ? "all" : set;
    if (value == "off") return std::nullopt;
    if (value == "one") return IpcReach::kOneGpu;
    if (value != "all") {
      LogWarning("BATON_CUDA_IPC=", value,
                 " means nothing; \"all\", \"one\" and \"off\" do");
    }
    return IpcReach::kAllGpus;
  }();
  return reach;
}

bool OffByEnvironment() {
  const char* set = std::getenv("BATON_MESSAGE_RING");
  const std::string value = set == nullptr ? "" : set;
  if (!value.empty() && value != "off")
    LogWarning("BATON_MESSAGE_RING=", value, " means nothing; \"off\" would");
  return value == "off";
}

}  // namespace

std::shared_ptr<Doorbell> MakeDoorbell(const GrpcOptions& options) {
  if (!options.shared_memory || !options.message_ring || OffByEnvironment()) {
    return nullptr;
  }
  auto doorbell = Doorbell::Make();
  return doorbell.ok() ? *std::move(doorbell) : nullptr;
}

absl::StatusOr<ChannelKinds> MakeChannelKinds(const GrpcOptions& options,
                                              const std::string& fd_path,
                                              std::shared_ptr<Doorbell> bell) {
  RETURN_IF_ERROR(CheckDevice(options.device));
  ChannelKinds kinds;
  if (options.shared_memory) {
    kinds.push_back(
        MakeSharedMemory({.socket_path = fd_path,
                          .bytes_per_peer = options.shared_memory_bytes,
                          .doorbell = std::move(bell)}));
  }
  const std::optional<IpcReach> reach = ReachFromEnvironment();
  if (options.device.is_cuda() && reach.has_value()) {
    kinds.push_back(MakeCudaIpc(MakeCudaGpu(options.device), *reach));
  }
  return kinds;
}

}  // namespace baton::rpc
