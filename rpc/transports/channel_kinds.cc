// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/channel_kinds.h"

#include "core/status.h"
#include "rpc/channels/cuda_ipc.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/shared_memory.h"

namespace baton::rpc {

absl::StatusOr<ChannelKinds> MakeChannelKinds(const GrpcOptions& options,
                                              const std::string& fd_path) {
  RETURN_IF_ERROR(CheckDevice(options.device));
  ChannelKinds kinds;
  if (options.shared_memory) {
    kinds.push_back(
        MakeSharedMemory({.socket_path = fd_path,
                          .bytes_per_peer = options.shared_memory_bytes}));
  }
  if (options.device.is_cuda()) {
    kinds.push_back(MakeCudaIpc(MakeCudaGpu(options.device)));
  }
  return kinds;
}

}  // namespace baton::rpc
