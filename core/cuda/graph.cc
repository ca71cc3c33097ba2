// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/graph.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/cuda/allocator.h"
#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/status.h"

namespace baton {
namespace {

constexpr char kOp[] = "graph";

using Uses = std::vector<std::shared_ptr<StreamUse>>;

// Those of `noted` that are still somebody's, each once.
Uses Alive(const std::vector<std::weak_ptr<StreamUse>>& noted) {
  std::set<std::shared_ptr<StreamUse>> alive;
  for (const std::weak_ptr<StreamUse>& use : noted) {
    if (std::shared_ptr<StreamUse> held = use.lock()) alive.insert(held);
  }
  return {alive.begin(), alive.end()};
}

// Makes the calling thread's work a capture from `origin` on; ends it, well or
// not, with its life.
class Capture {
 public:
  Capture(cuda::CaptureLog& log, const std::vector<Stream>& streams)
      : streams_(streams), origin_(cuda::NativeStream(streams.front())) {
    Require(cuda::CurrentCapture() == nullptr, kOp,
            "this thread is recording a graph already");
    const cuda::DeviceScope scope(streams.front().device().index());
    cuda::Check(
        kOp, cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal));
    cuda::CurrentCapture() = &log;
    for (size_t i = 1; i < streams.size(); ++i)
      streams[i].WaitFor(streams.front());
  }

  ~Capture() {
    cuda::CurrentCapture() = nullptr;
    if (ended_) return;
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(origin_, &broken);
    if (broken != nullptr) cudaGraphDestroy(broken);
    cudaGetLastError();
  }

  // `others`: streams that may have joined.
  cudaGraph_t End(const std::vector<Stream>& others) {
    for (const Stream& other : others) {
      if (cuda::IsCapturing(cuda::NativeStream(other)))
        streams_.front().WaitFor(other);
    }
    for (size_t i = 1; i < streams_.size(); ++i)
      streams_.front().WaitFor(streams_[i]);
    ended_ = true;
    cudaGraph_t graph = nullptr;
    cuda::Check(kOp, cudaStreamEndCapture(origin_, &graph));
    return graph;
  }

 private:
  const std::vector<Stream>& streams_;
  cudaStream_t origin_;
  bool ended_ = false;
};

// The streams that work may have gone to unseen.
std::vector<Stream> Helpers(const std::vector<Device>& devices) {
  std::vector<Stream> lanes;
  for (Device to : devices) {
    lanes.push_back(Stream::ForCopies(Device::Cpu(), to));
    lanes.push_back(Stream::ForCopies(to, Device::Cpu()));
    lanes.push_back(Stream::Beside(CurrentStream(to)));
    for (Device from : devices) {
      if (from != to) lanes.push_back(Stream::ForCopies(from, to));
    }
  }
  return lanes;
}

}  // namespace

class Graph::Recording {
 public:
  Recording(const std::vector<Device>& devices, absl::FunctionRef<void()> body)
      : devices_(devices), pool_(cuda::NewPool()) {
    try {
      Record(body);
    } catch (...) {
      cuda::EndCapture(pool_);
      Release();
      throw;
    }
  }
  ~Recording() { Release(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void Replay() const {
    std::vector<Stream> streams;
    for (Device device : devices_) streams.push_back(CurrentStream(device));
    const Stream& origin = streams.front();
    for (const auto& use : read_) use->Read(origin);
    for (const auto& use : written_) use->Write(origin);
    for (size_t i = 1; i < streams.size(); ++i) origin.WaitFor(streams[i]);
    const cuda::DeviceScope scope(origin.device().index());
    cuda::Check(kOp, cudaGraphLaunch(ready_, cuda::NativeStream(origin)));
    for (size_t i = 1; i < streams.size(); ++i) streams[i].WaitFor(origin);
  }

  int64_t kernels() const { return kernels_; }
  int64_t nodes() const { return nodes_; }

 private:
  void Record(absl::FunctionRef<void()> body) {
    std::vector<Stream> streams;
    for (Device device : devices_) {
      Synchronize(device);
      streams.push_back(CurrentStream(device));
    }
    cuda::CaptureLog log;
    log.pool = pool_;
    {
      Capture capture(log, streams);
      body();
      graph_ = capture.End(Helpers(devices_));
    }
    cuda::EndCapture(pool_);
    pinned_ = std::move(log.pinned);
    written_ = Alive(log.written);
    read_ = Alive(log.read);
    Count();
    cuda::Check(kOp,
                cudaGraphInstantiate(&ready_, graph_,
                                     cudaGraphInstantiateFlagUseNodePriority));
  }

  void Count() {
    size_t count = 0;
    cuda::Check(kOp, cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    cuda::Check(kOp, cudaGraphGetNodes(graph_, nodes.data(), &count));
    nodes_ = static_cast<int64_t>(count);
    kernels_ = std::count_if(nodes.begin(), nodes.end(), [](auto node) {
      cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
      cuda::Check(kOp, cudaGraphNodeGetType(node, &type));
      return type == cudaGraphNodeTypeKernel;
    });
  }

  void Release() {
    if (ready_ != nullptr) {
      for (Device device : devices_) {
        const cuda::DeviceScope scope(device.index());
        cudaDeviceSynchronize();  // a replay may still be running
      }
      cudaGraphExecDestroy(ready_);
    }
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    for (const cuda::CaptureLog::PinnedBlock& block : pinned_)
      cuda::FreePinned(block.data, block.bytes, {});
    cuda::ReleasePool(pool_);
  }

  const std::vector<Device> devices_;
  const int pool_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
  Uses written_, read_;
  std::vector<cuda::CaptureLog::PinnedBlock> pinned_;
  int64_t kernels_ = 0;
  int64_t nodes_ = 0;
};

Graph::Graph(std::shared_ptr<const Recording> recording)
    : recording_(std::move(recording)) {}

Graph Graph::Record(const std::vector<Device>& devices,
                    absl::FunctionRef<void()> body) {
  Require(!devices.empty(), kOp, "no device to record");
  for (Device device : devices) {
    Require(device.is_cuda(), kOp, "only GPUs record graphs, not ",
            device.ToString());
  }
  return Graph(std::make_shared<const Recording>(devices, body));
}

bool Graph::IsRecording() { return cuda::CurrentCapture() != nullptr; }

void Graph::Replay() const { recording_->Replay(); }
int64_t Graph::kernels() const { return recording_->kernels(); }
int64_t Graph::nodes() const { return recording_->nodes(); }

}  // namespace baton
