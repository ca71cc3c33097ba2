// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent.h"

namespace baton::examples {

// A trainer and one worker per device, all in this process: the same pipeline
// as over several machines, but tensors are handed over by pointer. Confined to
// one thread.
class DeviceCluster {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceCluster>> Make(int devices);

  rpc::Agent& trainer() { return *agents_.front(); }
  const std::vector<std::string>& workers() const { return workers_; }

  // All handles of the workers' objects must be gone.
  absl::Status Shutdown();

 private:
  std::vector<std::unique_ptr<rpc::Agent>> agents_;
  std::vector<std::string> workers_;
};

}  // namespace baton::examples
