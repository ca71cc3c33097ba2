// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint_writer.h"
#include "models/distributed/checkpoint_shard.h"
#include "models/distributed/module.h"
#include "optim/distributed/optimizer.h"
#include "rpc/agent.h"

namespace baton::dist {

// Every worker's registry needs this, RegisterModule and RegisterOptimizer.
void RegisterCheckpoints(rpc::Registry& registry);

// A module at any worker that is to be saved.
class SavedModule {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers list modules as they are
  template <typename M>
  SavedModule(const RRef<M>& module)
      : owner_([module]() -> const rpc::WorkerInfo& { return module.owner(); }),
        hold_([module](rpc::Agent& agent) {
          return rpc::CreateBy<&module_calls::Hold<M>>(agent, module.owner(),
                                                       module);
        }) {}
  template <typename M>
  SavedModule(const Module<M>& module) : SavedModule(module.ref()) {}
  // NOLINTEND(google-explicit-constructor)

  // Prefixes the names of the module's tensors with `name` and a dot. Without a
  // prefix they must be unique among all modules, as those of the stages of one
  // model are.
  SavedModule Named(const std::string& name) const {
    SavedModule named = *this;
    named.prefix_ = name + ".";
    return named;
  }

  const rpc::WorkerInfo& owner() const { return owner_(); }
  const std::string& prefix() const { return prefix_; }
  Future<RRef<HeldModule>> Hold(rpc::Agent& agent) const {
    return hold_(agent);
  }

 private:
  std::function<const rpc::WorkerInfo&()> owner_;  // it may move
  std::string prefix_;
  std::function<Future<RRef<HeldModule>>(rpc::Agent&)> hold_;
};

// A dist::Optimizer for a checkpoint. To load the state with any cut of a
// model, give the optimizer's sources empty names (ParameterSource::Named), so
// that its parameters have their own names. The optimizer must outlive it.
class SavedOptimizer {
 public:
  template <typename O>
  // NOLINTNEXTLINE(google-explicit-constructor): as modules
  SavedOptimizer(Optimizer<O>& optimizer)
      : hosts_([&optimizer] { return optimizer.Hosts(); }),
        export_rates_([&optimizer] { return optimizer.ExportRates(); }),
        import_rates_([&optimizer](const optim::StateDict& state) {
          return optimizer.ImportRates(state);
        }) {}
  // Names the checkpoint's part for this optimizer's state; needed if there are
  // several optimizers.
  SavedOptimizer Named(const std::string& part) const {
    SavedOptimizer named = *this;
    named.part_ = part;
    return named;
  }

  const std::string& part() const { return part_; }
  Future<std::vector<RRef<OptimizerHost>>> Hosts() const { return hosts_(); }
  optim::StateDict ExportRates() const { return export_rates_(); }
  absl::Status ImportRates(const optim::StateDict& state) const {
    return import_rates_(state);
  }

 private:
  std::string part_ = "optimizer";
  std::function<Future<std::vector<RRef<OptimizerHost>>>()> hosts_;
  std::function<optim::StateDict()> export_rates_;
  std::function<absl::Status(const optim::StateDict&)> import_rates_;
};

// Saves a training over several workers and resumes it, possibly on other
// workers and with another cut: tensors are found by name. Each worker writes
// and reads its own part; all must see the folder under the same path.
//
//   ASSIGN_OR_RETURN(auto checkpoints, dist::Checkpointer::Make(
//       agent, {.folder = "/data/run"}, {front, back}, {adam}));
//   RETURN_IF_ERROR(checkpoints->Save(step, loader.ExportState()));
//   ...
//   RETURN_IF_ERROR(checkpoints->Wait());
//
//   ASSIGN_OR_RETURN(auto resumed, checkpoints->Resume(IfBroken::kFail));
//   RETURN_IF_ERROR(loader.ImportState(resumed.trainer));
//
// Must not outlive the agent and the optimizers. Thread-compatible; do not use
// it while a step is under way.
class Checkpointer {
 public:
  // Returns errors of the workers. Each call has the agent's default timeout.
  static absl::StatusOr<std::unique_ptr<Checkpointer>> Make(
      rpc::Agent& agent, const CheckpointOptions& options,
      const std::vector<SavedModule>& modules,
      const std::vector<SavedOptimizer>& optimizers);

  // Finds the workers where they are now. Call this after modules have moved
  // (RRef::MoveTo) and optimizers were made anew. Waits for a save under way.
  absl::Status MakeAnew();

  // From now on Save first calls `guard`, and returns its error.
  void set_guard(std::function<absl::Status()> guard) {
    guard_ = std::move(guard);
  }

  // Saves the workers' state and `trainer`, the trainer's own. Returns when all
  // workers have copied their state to host memory and `trainer` is copied; the
  // workers write while training goes on. At most one save is under way, and
  // its errors are returned as CheckpointWriter says.
  absl::Status Save(int64_t step, const NamedTensors& trainer = {});
  absl::Status Wait() { return writer_.Wait(); }

  struct Resumed {
    int64_t step = 0;
    NamedTensors trainer;  // what Save was given
  };
  // Loads the newest checkpoint, or the one that ResumeFrom chooses. Returns
  // InvalidArgument if it has tensors that no module or optimizer here has, or
  // lacks some. After an error, discard the modules or resume them again.
  absl::StatusOr<Resumed> Resume(IfBroken if_broken);

  // Loads only the modules' parameters and buffers from a plain safetensors
  // file, as ExportPart and other programs write it. Errors are those of
  // Resume, and NotFound.
  absl::Status LoadWeights(const std::string& path);

 private:
  Checkpointer(rpc::Agent& agent, const CheckpointOptions& options,
               const std::vector<SavedModule>& modules,
               const std::vector<SavedOptimizer>& optimizers)
      : agent_(agent),
        modules_(modules),
        optimizers_(optimizers),
        writer_(options) {}

  rpc::CallOptions Transfers() const;
  absl::StatusOr<Future<std::vector<Shard>>> BeginShards(
      const CheckpointDraft& draft);
  absl::StatusOr<Resumed> Load(const Checkpoint& checkpoint);
  absl::Status CheckUsed(
      const std::string& what, const std::vector<std::string>& names,
      const std::vector<std::vector<std::string>>& used) const;

  rpc::Agent& agent_;
  const std::vector<SavedModule> modules_;
  const std::vector<SavedOptimizer> optimizers_;
  std::vector<RRef<WorkerShard>> shards_;
  std::function<absl::Status()> guard_ = nullptr;
  CheckpointWriter writer_;
};

}  // namespace baton::dist
