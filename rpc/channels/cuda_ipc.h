// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {

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
