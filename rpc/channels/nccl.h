// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>

#include "rpc/channels/channel.h"
#include "rpc/channels/ipc_gpu.h"
#include "rpc/channels/nccl_gpu.h"

namespace baton::rpc {

struct NcclOptions {
  // Whoever reads the network between the workers may: NCCL talks in clear, and
  // believes whoever comes.
  bool trusted_fabric = false;
  // How long a connection may take to open its lines, and to prove them, from
  // when it is its turn at both ends; and how long one may wait for the
  // other's.
  std::chrono::milliseconds opening{30'000};
  std::chrono::milliseconds turn{300'000};
  // How long tensors that are under way when a connection ends may still come.
  std::chrono::milliseconds grace{500};
  // How long NCCL may take to let go of tensors of a connection that has ended,
  // before those who use them go on.
  std::chrono::milliseconds aborting{5'000};
};

// NCCL, for GPU tensors between workers that have each declared a GPU, not the
// same one; on one machine or on two, where CUDA IPC does not serve them. A
// pair of workers has a line each way (core/cuda/nccl.h). The receiver asks for
// each tensor that it was promised, when it has memory for it; the sender sends
// it when it is written, copies nothing and waits for nothing, but whoever
// writes the tensor there waits until it has been sent. What NCCL fails at
// while tensors are on their way ends the connection: they do not come
// otherwise. A worker to which that happened three times offers it no more.
// Where there is no GPU or no NCCL, what is made offers the reason.
std::shared_ptr<ChannelKind> MakeNccl(std::shared_ptr<IpcGpu> gpu,
                                      std::shared_ptr<NcclGpu> nccl,
                                      const NcclOptions& options);

}  // namespace baton::rpc
