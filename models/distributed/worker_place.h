// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/agent.h"
#include "rpc/call_context.h"

namespace baton::dist {

// Where a worker computes. Plain data.
struct WorkerPlace {
  std::string machine;  // empty: unknown
  int64_t process = 0;
  std::string gpu;        // the GPU's UUID (cuda::UuidOf); empty: the CPU
  double free_bytes = 0;  // of the GPU's memory

  bool on_gpu() const { return !gpu.empty(); }
  // Returns true if pipelines pass values from one to the other through windows
  // (docs/design/step_windows.md), if nothing else forbids it.
  bool MayShareWindow(const WorkerPlace& other) const;
  // Returns true if both compute on the same GPU.
  bool SharesGpu(const WorkerPlace& other) const;
  static constexpr auto Fields() {
    return std::tuple{&WorkerPlace::machine, &WorkerPlace::process,
                      &WorkerPlace::gpu, &WorkerPlace::free_bytes};
  }
};

namespace profile_calls {
// Returns this worker's place, after it has given memory that it keeps for
// reuse back to the GPU.
absl::StatusOr<WorkerPlace> PlaceHere(rpc::CallContext& call);
}  // namespace profile_calls

// Asks each of `workers`; RegisterLinks (profile.h) registers what is called.
absl::StatusOr<std::vector<WorkerPlace>> PlacesOf(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout);

}  // namespace baton::dist
