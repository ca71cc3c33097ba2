// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/worker_place.h"

#include <unistd.h>

#include "core/cuda/ipc.h"
#include "core/status.h"
#include "core/storage.h"
#include "rpc/channels/segment.h"
#include "rpc/unregistered.h"

namespace baton::dist {

bool WorkerPlace::MayShareWindow(const WorkerPlace& other) const {
  return !machine.empty() && machine == other.machine &&
         process != other.process && on_gpu() == other.on_gpu() &&
         !SharesGpu(other);
}

bool WorkerPlace::SharesGpu(const WorkerPlace& other) const {
  return on_gpu() && gpu == other.gpu;
}

namespace profile_calls {

absl::StatusOr<WorkerPlace> PlaceHere(rpc::CallContext& call) {
  WorkerPlace place;
  ASSIGN_OR_RETURN(place.machine, rpc::BootId());
  place.process = getpid();
  const Device device = call.compute().device;
  if (device.is_cpu()) return place;
  RETURN_IF_ERROR(CatchErrors([&] {
    ReleaseCachedGpuMemory(device);
    place.gpu = cuda::UuidOf(device.index());
    place.free_bytes = static_cast<double>(FreeGpuMemory(device));
  }));
  return place;
}

}  // namespace profile_calls

absl::StatusOr<std::vector<WorkerPlace>> PlacesOf(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout) {
  std::vector<WorkerPlace> places;
  // One after the other, so that each sees what those before it gave back.
  for (const std::string& worker : workers) {
    ASSIGN_OR_RETURN(
        places.emplace_back(),
        rpc::OrNameMissing(agent.Async<&profile_calls::PlaceHere>(
                               worker, rpc::CallOptions{.timeout = timeout}),
                           "PlacesOf",
                           "call dist::RegisterLinks(registry) before joining")
            .Await(kNoLimit));
  }
  return places;
}

}  // namespace baton::dist
