// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/peers.h"

#include <cuda_runtime_api.h>

#include <map>
#include <utility>
#include <vector>

#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/memory.h"
#include "core/cuda/status.h"
#include "core/cuda/stream.h"
#include "core/log.h"
#include "core/mutex.h"

namespace baton::cuda {
namespace {

constexpr char kOp[] = "copy";

bool Enable(int device, int peer) {
  int possible = 0;
  Check(kOp, cudaDeviceCanAccessPeer(&possible, device, peer));
  if (possible == 0) return false;
  const DeviceScope scope(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  cudaGetLastError();
  return error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled;
}

// Some virtual machines report access and deliver wrong bytes.
bool BytesArrive(int device, int peer) {
  std::vector<int32_t> sent(1 << 16), received(sent.size(), -1);
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<int32_t>(i * 2654435761u);
  const auto bytes = static_cast<int64_t>(sent.size() * sizeof(int32_t));
  const Stream here = Stream::ForCopies(Device::Cpu(), Device::Cuda(device));
  const Stream there = Stream::ForCopies(Device::Cpu(), Device::Cuda(peer));
  void* from = Allocate(static_cast<size_t>(bytes), here);
  void* to = Allocate(static_cast<size_t>(bytes), there);
  const auto size = static_cast<size_t>(bytes);
  Check(kOp, cudaMemcpy(from, sent.data(), size, cudaMemcpyHostToDevice));
  Check(kOp, cudaMemcpyPeer(to, peer, from, device, size));
  Check(kOp, cudaMemcpy(received.data(), to, size, cudaMemcpyDeviceToHost));
  Free(from, device, {});
  Free(to, peer, {});
  return sent == received;
}

bool Probe(int device, int peer) {
  const RelaxedCapture relaxed;
  if (Enable(device, peer) && Enable(peer, device) && BytesArrive(device, peer))
    return true;
  LogWarning("cuda:", device, " and cuda:", peer,
             " do not reach each other's memory: copies go through the host");
  return false;
}

// Copies through pinned host memory, in two steps on the two devices.
void CopyThroughHost(const Tensor& target, const Tensor& source,
                     const Stream& out, const Stream& in) {
  const size_t bytes = source.nbytes();
  void* host = AllocatePinned(bytes);
  {
    const DeviceScope scope(source.device().index());
    Check(kOp, cudaMemcpyAsync(host, source.raw_data(), bytes,
                               cudaMemcpyDeviceToHost, NativeStream(out)));
  }
  in.WaitFor(out);
  const DeviceScope scope(target.device().index());
  Check(kOp, cudaMemcpyAsync(target.raw_data(), host, bytes,
                             cudaMemcpyHostToDevice, NativeStream(in)));
  FreePinned(host, bytes, {in});
}

}  // namespace

bool PeersReach(int device, int peer) {
  static Mutex mutex;
  static auto* const known = new std::map<std::pair<int, int>, bool>;
  const std::pair<int, int> pair = std::minmax(device, peer);
  MutexLock lock(mutex);
  const auto found = known->find(pair);
  if (found != known->end()) return found->second;
  return known->emplace(pair, Probe(pair.first, pair.second)).first->second;
}

void CopyBetween(const Tensor& target, const Tensor& source) {
  const Device from = source.device(), to = target.device();
  const bool direct = PeersReach(from.index(), to.index());
  const Stream copy_stream = Stream::ForCopies(from, to);
  const Stream out =
      direct ? copy_stream : Stream::ForCopies(from, Device::Cpu());
  MarkStream(out.device().index(), out.index());
  MarkStream(copy_stream.device().index(), copy_stream.index());
  source.storage()->use()->Read(out);
  target.storage()->use()->Write(copy_stream);
  NoteCopy(target, source);
  if (direct) {
    const DeviceScope scope(to.index());
    // Uses addresses, because a capture refuses cudaMemcpyPeerAsync.
    Check(kOp,
          cudaMemcpyAsync(target.raw_data(), source.raw_data(), source.nbytes(),
                          cudaMemcpyDeviceToDevice, NativeStream(copy_stream)));
  } else {
    CopyThroughHost(target, source, out, copy_stream);
  }
  source.storage()->use()->Extend(out);
  target.storage()->use()->Extend(copy_stream);
}

}  // namespace baton::cuda
