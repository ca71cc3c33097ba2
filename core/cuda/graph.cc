// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/graph.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/cuda/allocator.h"
#include "core/cuda/capture.h"
#include "core/cuda/handles.h"
#include "core/cuda/status.h"
#include "core/status.h"

namespace baton {
namespace {

constexpr char kOp[] = "graph";

// The storages that a graph uses, each once.
class Places {
 public:
  Places() = default;
  // Takes the storages of `noted` that still exist. Those with ids below
  // `first_made` existed before the recording; only they are required to stay.
  Places(const std::vector<std::weak_ptr<Storage>>& noted,
         uint64_t first_made) {
    std::set<uint64_t> seen;
    for (const std::weak_ptr<Storage>& weak : noted) {
      const std::shared_ptr<Storage> storage = weak.lock();
      if (storage == nullptr || !seen.insert(storage->id()).second) continue;
      places_.push_back({storage, storage->id() < first_made});
    }
  }

  // Calls use(storage) for those that still exist. Throws Error if one that
  // existed before the recording is gone.
  template <typename Use>
  void ForEach(const Use& use) const {
    for (const Place& place : places_) {
      const std::shared_ptr<Storage> storage = place.storage.lock();
      if (storage != nullptr) {
        use(*storage);
      } else if (place.given) {
        Fail(kOp,
             "a tensor that the recording uses was freed, moved or cast since: "
             "record it anew",
             absl::StatusCode::kFailedPrecondition);
      }
    }
  }

 private:
  struct Place {
    std::weak_ptr<Storage> storage;
    bool given;
  };
  std::vector<Place> places_;
};

std::vector<cudaGraphNode_t> NodesOf(cudaGraph_t graph) {
  size_t count = 0;
  cuda::Check(kOp, cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  cuda::Check(kOp, cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

cudaGraphNodeType TypeOf(cudaGraphNode_t node) {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  cuda::Check(kOp, cudaGraphNodeGetType(node, &type));
  return type;
}

using Neighbours = decltype(&cudaGraphNodeGetDependencies);

std::vector<cudaGraphNode_t> NeighboursOf(cudaGraphNode_t node,
                                          Neighbours get) {
  size_t count = 0;
  cuda::Check(kOp, get(node, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  std::vector<cudaGraphEdgeData> edges(count);
  cuda::Check(kOp, get(node, nodes.data(), edges.data(), &count));
  return nodes;
}

// Keeps the order of the nodes before it and those after it.
void RemoveNode(cudaGraph_t graph, cudaGraphNode_t node) {
  const auto before = NeighboursOf(node, &cudaGraphNodeGetDependencies);
  const auto after = NeighboursOf(node, &cudaGraphNodeGetDependentNodes);
  cuda::Check(kOp, cudaGraphDestroyNode(node));
  for (cudaGraphNode_t first : before) {
    const auto ordered = NeighboursOf(first, &cudaGraphNodeGetDependentNodes);
    for (cudaGraphNode_t next : after) {
      if (absl::c_linear_search(ordered, next)) continue;
      cuda::Check(kOp,
                  cudaGraphAddDependencies(graph, &first, &next, nullptr, 1));
    }
  }
}

int64_t RemoveNodes(cudaGraph_t graph, cudaGraphNodeType type) {
  int64_t removed = 0;
  for (cudaGraphNode_t node : NodesOf(graph)) {
    if (TypeOf(node) != type) continue;
    RemoveNode(graph, node);
    ++removed;
  }
  return removed;
}

cudaGraphExec_t Instantiated(cudaGraph_t graph) {
  cudaGraphExec_t ready = nullptr;
  cuda::Check(kOp, cudaGraphInstantiate(
                       &ready, graph, cudaGraphInstantiateFlagUseNodePriority));
  return ready;
}

// Captures the calling thread's work; the destructor ends the capture,
// successful or not.
class Capture {
 public:
  Capture(cuda::CaptureLog& log, const Stream& origin) : log_(log) {
    log.streams.Begin(origin.device().index(), origin.index());
    cuda::CurrentCapture() = &log;
  }
  ~Capture() {
    cuda::CurrentCapture() = nullptr;
    log_.streams.Abandon();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  cuda::CaptureLog& log_;
};

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

  void Replay(bool timed) const {
    std::vector<Stream> streams;
    for (Device device : devices_) streams.push_back(CurrentStream(device));
    const Stream& origin = streams.front();
    read_.ForEach([&](Storage& storage) { storage.use()->Read(origin); });
    written_.ForEach([&](Storage& storage) {
      storage.PrepareWrite();
      storage.use()->Write(origin);
      storage.BumpVersion();
    });
    for (size_t i = 1; i < streams.size(); ++i) origin.WaitFor(streams[i]);
    const cuda::DeviceScope scope(origin.device().index());
    cuda::Check(
        kOp, cudaGraphLaunch(timed || untimed_ == nullptr ? timed_ : untimed_,
                             cuda::NativeStream(origin)));
    for (size_t i = 1; i < streams.size(); ++i) streams[i].WaitFor(origin);
    for (const auto& call : after_replay_) call();
  }

  int64_t kernels() const { return kernels_; }
  int64_t nodes() const { return nodes_; }

 private:
  void Record(absl::FunctionRef<void()> body) {
    for (Device device : devices_) Synchronize(device);
    const uint64_t first_made =
        Storage::Wrap(nullptr, 0, Device::Cpu(), nullptr)->id();
    cuda::CaptureLog log(pool_);
    {
      Capture capture(log, CurrentStream(devices_.front()));
      body();
      graph_ = log.streams.End();
    }
    // Other threads' work of that time may use the same tensors, whose
    // StreamUse counted the recorded work as enqueued.
    for (Device device : devices_) Synchronize(device);
    cuda::EndCapture(pool_);
    pinned_ = std::move(log.pinned);
    after_replay_ = std::move(log.after_replay);
    written_ = Places(log.written, first_made);
    read_ = Places(log.read, first_made);
    const std::vector<cudaGraphNode_t> nodes = NodesOf(graph_);
    nodes_ = static_cast<int64_t>(nodes.size());
    kernels_ = std::count_if(nodes.begin(), nodes.end(), [](auto node) {
      return TypeOf(node) == cudaGraphNodeTypeKernel;
    });
    timed_ = Instantiated(graph_);
    // A recording needs only those events whose times are wanted.
    if (RemoveNodes(graph_, cudaGraphNodeTypeEventRecord) > 0)
      untimed_ = Instantiated(graph_);
  }

  void Release() {
    for (cudaGraphExec_t ready : {timed_, untimed_}) {
      if (ready == nullptr) continue;
      // A replay may still be running.
      CatchErrors([&] {
        for (Device device : devices_) Synchronize(device);
      }).IgnoreError();
      cudaGraphExecDestroy(ready);
    }
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    for (const cuda::CaptureLog::PinnedBlock& block : pinned_)
      cuda::FreePinned(block.data, block.bytes, {});
    cuda::ReleasePool(pool_);
  }

  const std::vector<Device> devices_;
  const int pool_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t timed_ = nullptr;
  cudaGraphExec_t untimed_ = nullptr;  // null if the graph records no times
  Places written_, read_;
  std::vector<cuda::CaptureLog::PinnedBlock> pinned_;
  std::vector<std::function<void()>> after_replay_;
  int64_t kernels_ = 0;
  int64_t nodes_ = 0;
};

Graph::Graph(std::shared_ptr<const Recording> recording)
    : recording_(std::move(recording)) {}

Graph Graph::Record(const std::vector<Device>& devices,
                    absl::FunctionRef<void()> body) {
  Require(!devices.empty(), kOp, "no device to record");
  Require(!IsRecording(), kOp, "this thread is recording a graph already");
  for (Device device : devices) {
    Require(device.is_cuda(), kOp, "only GPUs record graphs, not ",
            device.ToString());
  }
  return Graph(std::make_shared<const Recording>(devices, body));
}

uint64_t Graph::CurrentRecording() {
  const cuda::CaptureLog* capture = cuda::CurrentCapture();
  return capture == nullptr ? 0 : static_cast<uint64_t>(capture->pool);
}

void Graph::AfterReplay(std::function<void()> call) {
  Require(IsRecording(), kOp, "this thread is not recording");
  cuda::CurrentCapture()->after_replay.push_back(std::move(call));
}

void Graph::Replay(bool timed) const { recording_->Replay(timed); }
int64_t Graph::kernels() const { return recording_->kernels(); }
int64_t Graph::nodes() const { return recording_->nodes(); }

}  // namespace baton
