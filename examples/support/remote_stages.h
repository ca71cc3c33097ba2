// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/future.h"
#include "core/status.h"
#include "models/distributed/devices.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/profile.h"
#include "rpc/agent.h"

namespace baton::examples {

// Makes the stages of one model, one for each part between cuts, at the workers
// where the schedule places them. Errors name the worker.
template <typename M>
absl::StatusOr<std::vector<dist::Module<M>>> MakeStages(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const dist::profile_calls::OptionsOf<M>& model,
    const dist::ScheduleChoice& schedule,
    const std::vector<std::string>& cuts) {
  const int count = static_cast<int>(cuts.size()) + 1;
  ASSIGN_OR_RETURN(
      const std::vector<int> placed,
      dist::PlaceStages(count == 1 ? dist::ScheduleChoice() : schedule, count,
                        static_cast<int>(workers.size())));
  std::vector<Future<dist::Module<M>>> making;
  for (int i = 0; i < count; ++i) {
    const auto worker = static_cast<size_t>(placed[static_cast<size_t>(i)]);
    making.push_back(
        dist::Module<M>::Create(agent, workers[worker], model, cuts, i));
  }
  // --rpc_timeout ends these calls.
  return WaitAll(making).Await(kNoLimit);
}

// As above, but makes all stages at one worker, on the devices where the
// schedule places them. No devices: all of the worker's.
template <typename M>
absl::StatusOr<std::vector<dist::Module<M>>> MakeLocalStages(
    rpc::Agent& agent, const std::string& worker, std::vector<Device> devices,
    const dist::profile_calls::OptionsOf<M>& model,
    const dist::ScheduleChoice& schedule,
    const std::vector<std::string>& cuts) {
  if (devices.empty()) {
    ASSIGN_OR_RETURN(devices, dist::DevicesOf(agent, worker).Await(kNoLimit));
  }
  const int count = static_cast<int>(cuts.size()) + 1;
  ASSIGN_OR_RETURN(
      const std::vector<int> placed,
      dist::PlaceStages(schedule, count, static_cast<int>(devices.size())));
  std::vector<Future<dist::Module<M>>> making;
  for (int i = 0; i < count; ++i) {
    const auto device = static_cast<size_t>(placed[static_cast<size_t>(i)]);
    making.push_back(dist::Module<M>::Create(
        agent, worker, dist::Placement{.device = devices[device]}, model, cuts,
        i));
  }
  return WaitAll(making).Await(kNoLimit);
}

}  // namespace baton::examples
