// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/module.h"
#include "models/distributed/module_calls.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/worker_place.h"
#include "models/distributed/workload.h"
#include "models/nn/module.h"
#include "rpc/agent.h"
#include "rpc/call_context.h"
#include "rpc/unregistered.h"

// Measures what the units of a model (models/units.h) and the links between the
// workers cost in a cluster. A plan (partition.h) is made from the result.
namespace baton::dist {

// The costs of one unit for one micro-batch, in seconds and bytes.
struct UnitCosts {
  StageCosts seconds;
  double held_bytes = 0;  // held from F until W, including the output
  // Bytes sent to the next unit; the gradients that come back have the same
  // size.
  double output_bytes = 0;
  static constexpr auto Fields() {
    return std::tuple{&UnitCosts::seconds, &UnitCosts::held_bytes,
                      &UnitCosts::output_bytes};
  }
};

// The costs of all units at one worker. Plain data.
struct Profile {
  std::vector<std::string> units;
  std::vector<double> parameter_bytes;  // of each unit
  double input_bytes = 0;               // of one row
  std::vector<int64_t> rows;  // the micro-batch sizes that were measured,
                              // ascending
  std::vector<std::vector<UnitCosts>> costs;  // by size as in `rows`, then by
                                              // unit
  // The smallest micro-batch that the model can be trained on: 1, or the
  // smallest of `rows` if smaller sizes were refused.
  int64_t least_rows = 1;

  // Costs for a micro-batch of any size: interpolated linearly between measured
  // sizes, and proportional outside of them.
  std::vector<UnitCosts> At(int64_t micro_batch) const;
  static constexpr auto Fields() {
    return std::tuple{&Profile::units,       &Profile::parameter_bytes,
                      &Profile::input_bytes, &Profile::rows,
                      &Profile::costs,       &Profile::least_rows};
  }
};

struct ProfileRequest {
  // These need at least as many rows as the largest micro-batch.
  Tensor inputs;
  Tensor targets;
  std::vector<int64_t> rows;  // the micro-batch sizes to measure
  Loss loss = Loss::kCrossEntropy;
  int32_t repeats = 3;  // the median of them counts; one more run comes first
                        // and is ignored
  // See PipelineOptions.
  int32_t compute_threads = 0;
  bool graph = true;
  static constexpr auto Fields() {
    return std::tuple{
        &ProfileRequest::inputs,  &ProfileRequest::targets,
        &ProfileRequest::rows,    &ProfileRequest::loss,
        &ProfileRequest::repeats, &ProfileRequest::compute_threads,
        &ProfileRequest::graph};
  }
};

// Makes the module of a unit, given the unit's index.
using MakeUnit =
    std::function<absl::StatusOr<std::shared_ptr<nn::Module>>(size_t)>;

// Makes the modules of all units and trains the chain of them on micro-batches
// of each size; then destroys them. If the device lacks the memory for that, it
// makes and trains half of the units after the other half, down to single
// units, so that a model may be larger than the device's memory. `held_bytes`
// counts everything that the process allocates on the device meanwhile. Left
// out are sizes for which the device lacks the memory even for a single unit,
// if another one fits, and sizes that a module refuses, if a larger one works:
// batch norm may refuse a single row. Returns InvalidArgument for a bad
// request, or the module's error.
absl::StatusOr<Profile> MeasureUnits(const std::vector<std::string>& units,
                                     const MakeUnit& make,
                                     const ProfileRequest& request);

// The costs of a link from one worker to another.
struct LinkCosts {
  double latency_s = 0;  // for each message
  double seconds_per_byte = 0;
  static constexpr auto Fields() {
    return std::tuple{&LinkCosts::latency_s, &LinkCosts::seconds_per_byte};
  }
};

// Plain data.
struct ClusterProfile {
  std::vector<Profile> workers;
  std::vector<std::vector<LinkCosts>> links;  // [from][to]
  // Of each worker; empty: unknown, so that no GPU limits a plan's memory.
  std::vector<WorkerPlace> places = {};
};

namespace profile_calls {

// Makes the units of M on the device that this worker has declared, and
// measures them.
template <typename M>
using OptionsOf =
    std::remove_cvref_t<decltype(std::declval<const M&>().options())>;

template <typename M>
absl::StatusOr<Profile> Measure(rpc::CallContext& call,
                                const OptionsOf<M>& options,
                                const ProfileRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> units,
                   M::StageUnits(options, {}, 0));
  const std::vector<std::string> cuts(units.begin(), units.end() - 1);
  return MeasureUnits(
      units,
      [&](size_t unit) -> absl::StatusOr<std::shared_ptr<nn::Module>> {
        return module_calls::Make<M>(call, Placement{}, options, cuts,
                                     static_cast<int>(unit));
      },
      request);
}

// Measures the links from this worker to each of `workers`, one after the
// other.
absl::StatusOr<std::vector<LinkCosts>> MeasureLinks(
    rpc::CallContext& call, const std::vector<std::string>& workers);
bool Take(const Tensor& tensor);  // receives the measured messages

}  // namespace profile_calls

// ProfileLinks and PlacesOf need this in every worker's registry.
void RegisterLinks(rpc::Registry& registry);
// ProfileCluster needs this for each M in every worker's registry. M is made
// from options, cuts and an index and has options() and StageUnits, as
// ResNetStage does.
template <typename M>
void RegisterProfile(rpc::Registry& registry) {
  registry.AddFunction<&profile_calls::Measure<M>>();
}

// Asks each of `workers` in turn to measure its links to the others.
absl::StatusOr<std::vector<std::vector<LinkCosts>>> ProfileLinks(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout);

// Makes each worker measure all units of M, all workers at the same time, as
// they will be in training, and then asks for their places and measures the
// links. This takes about (repeats + 1)
// times as long as a worker needs to train the rows of the request. Meanwhile
// each worker holds the whole model, without an optimizer, or as much of it as
// it has the memory for. `timeout` applies to each call; returns the first
// error.
template <typename M>
absl::StatusOr<ClusterProfile> ProfileCluster(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const profile_calls::OptionsOf<M>& options, const ProfileRequest& request,
    std::chrono::milliseconds timeout) {
  const std::string type = rpc::internal::TypeName<M>();
  std::vector<Future<Profile>> measuring;
  for (const std::string& worker : workers) {
    measuring.push_back(rpc::OrNameMissing(
        agent.Async<&profile_calls::Measure<M>>(
            worker, rpc::CallOptions{.timeout = timeout}, options, request),
        absl::StrCat("ProfileCluster<", type, ">"),
        absl::StrCat("call dist::RegisterProfile<", type,
                     ">(registry) before joining")));
  }
  ClusterProfile profile;
  ASSIGN_OR_RETURN(profile.workers, WaitAll(measuring).Await(kNoLimit));
  // By now the measured models are gone.
  ASSIGN_OR_RETURN(profile.places, PlacesOf(agent, workers, timeout));
  ASSIGN_OR_RETURN(profile.links, ProfileLinks(agent, workers, timeout));
  return profile;
}

}  // namespace baton::dist
