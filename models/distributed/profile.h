// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/status.h"
#include "models/distributed/module.h"
#include "models/distributed/step_plan.h"
#include "models/distributed/workload.h"
#include "models/nn/module.h"
#include "rpc/agent.h"
#include "rpc/call_context.h"

// What the units of a model (models/units.h) cost at the workers of a cluster,
// and the links between them: what a plan (partition.h) is made by.
namespace baton::dist {

// Of one unit, on one micro-batch.
struct UnitCosts {
  StageCosts seconds;
  double held_bytes = 0;  // from F until W, the output among them
  // To the next unit, none of the last; the gradients have as many.
  double output_bytes = 0;
  static constexpr auto Fields() {
    return std::tuple{&UnitCosts::seconds, &UnitCosts::held_bytes,
                      &UnitCosts::output_bytes};
  }
};

// Of one worker. Plain data.
struct Profile {
  std::vector<std::string> units;
  std::vector<double> parameter_bytes;        // of each unit
  double input_bytes = 0;                     // of a row
  std::vector<int64_t> rows;                  // that were measured, ascending
  std::vector<std::vector<UnitCosts>> costs;  // of each of these, each unit's
  // Of a micro-batch that the model can be trained on: 1, or the least of
  // `rows` where smaller ones were refused.
  int64_t least_rows = 1;

  // Of a micro-batch of any size: between what was measured by a straight line,
  // beyond in proportion.
  std::vector<UnitCosts> At(int64_t micro_batch) const;
  static constexpr auto Fields() {
    return std::tuple{&Profile::units,       &Profile::parameter_bytes,
                      &Profile::input_bytes, &Profile::rows,
                      &Profile::costs,       &Profile::least_rows};
  }
};

struct ProfileRequest {
  // Of at least as many rows as the largest micro-batch.
  Tensor inputs;
  Tensor targets;
  std::vector<int64_t> rows;  // of the micro-batches to measure
  Loss loss = Loss::kCrossEntropy;
  int32_t repeats = 3;  // the median counts; a first one never does
  // As in PipelineOptions.
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

// Trains the chain of `modules`, one a unit, on micro-batches of each size, and
// throws the gradients away; running statistics move. Bytes count all that the
// process keeps on the device meanwhile. Sizes that a module refuses, as batch
// norm may a single row, are left out where larger ones do. InvalidArgument for
// a request that does not fit, else the error of the module.
absl::StatusOr<Profile> MeasureUnits(
    const std::vector<std::string>& units,
    const std::vector<std::shared_ptr<nn::Module>>& modules,
    const ProfileRequest& request);

// From one worker to another.
struct LinkCosts {
  double latency_s = 0;  // of a message
  double seconds_per_byte = 0;
  static constexpr auto Fields() {
    return std::tuple{&LinkCosts::latency_s, &LinkCosts::seconds_per_byte};
  }
};

// Plain data.
struct ClusterProfile {
  std::vector<Profile> workers;
  std::vector<std::vector<LinkCosts>> links;  // [from][to]
};

namespace profile_calls {

// Units of M, made for it on the device that this worker has declared.
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
  std::vector<std::shared_ptr<nn::Module>> modules;
  for (size_t i = 0; i < units.size(); ++i) {
    ASSIGN_OR_RETURN(std::shared_ptr<M> module,
                     M::Make(options, cuts, static_cast<int>(i)));
    RETURN_IF_ERROR(
        CatchErrors([&] { Place(*module, Placement{}, call.compute()); }));
    modules.push_back(std::move(module));
  }
  return MeasureUnits(units, modules, request);
}

// To each of these workers, one after the other.
absl::StatusOr<std::vector<LinkCosts>> MeasureLinks(
    rpc::CallContext& call, const std::vector<std::string>& workers);
bool Take(const Tensor& tensor);  // what they send

}  // namespace profile_calls

// Every worker's registry needs it.
void RegisterLinks(rpc::Registry& registry);
// Likewise, for each M: a module that is made from options, cuts and an index,
// as ResNetStage is, with options() and StageUnits.
template <typename M>
void RegisterProfile(rpc::Registry& registry) {
  registry.AddFunction<&profile_calls::Measure<M>>();
}

// Asks `workers` for the links between them, one worker after the other.
absl::StatusOr<std::vector<std::vector<LinkCosts>>> ProfileLinks(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    std::chrono::milliseconds timeout);

// Has each worker measure all units of M, all workers at a time, as they will
// train, and then the links. Takes about (repeats + 1) times as long as a
// worker needs to train the rows of the request, and has each hold the whole
// model, without an optimizer, for so long. `timeout` is for each call; the
// first error counts.
template <typename M>
absl::StatusOr<ClusterProfile> ProfileCluster(
    rpc::Agent& agent, const std::vector<std::string>& workers,
    const profile_calls::OptionsOf<M>& options, const ProfileRequest& request,
    std::chrono::milliseconds timeout) {
  std::vector<Future<Profile>> measuring;
  for (const std::string& worker : workers) {
    measuring.push_back(agent.Async<&profile_calls::Measure<M>>(
        worker, rpc::CallOptions{.timeout = timeout}, options, request));
  }
  ClusterProfile profile;
  ASSIGN_OR_RETURN(profile.workers, WaitAll(measuring).Await(kNoLimit));
  ASSIGN_OR_RETURN(profile.links, ProfileLinks(agent, workers, timeout));
  return profile;
}

}  // namespace baton::dist
