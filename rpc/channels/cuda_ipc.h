// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"

namespace baton::rpc {

// CUDA IPC, for GPU tensors between processes of one machine and user that have
// each declared a GPU: the same one, for its tensors, or any where both reach
// all. The receiver opens the segments of the sender's caching
// allocator and copies each tensor once, from GPU to GPU, to one that it has
// declared; the sender copies nothing and waits for nothing, but whoever writes
// a tensor there waits until it has been read. Segments and events are opened
// when they are first needed: the tensors that showed the need travel
// otherwise. Where there is no GPU, what is made offers the reason.
std::shared_ptr<ChannelKind> MakeCudaIpc(std::shared_ptr<IpcGpu> gpu,
                                         IpcReach reach);

}  // namespace baton::rpc
