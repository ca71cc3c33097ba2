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

// Every worker's registry needs it, beside RegisterModule and
// RegisterOptimizer.
void RegisterCheckpoints(rpc::Registry& registry);

// A module, wherever it lives, as a checkpoint has it.
class SavedModule {
 public:
  // NOLINTBEGIN(google-explicit-constructor): lists of modules read as such
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

  // What its tensors' names begin with, and a dot; without it they are unique
  // among all modules, as those of the stages of one model are.
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

// A dist::Optimizer as a checkpoint has it. To fit any cut of a model, give its
// sources empty names (ParameterSource::Named), so that its parameters have
// their own. Outlived by the optimizer.
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
  // The part that its state is, where there are several.
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

// Saves a training over workers, and resumes it, on other workers and with
// another cut as well: tensors go by their names. Each worker writes and reads
// its own part; the folder is one that all see under the same path.
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
// Must not outlive the agent and the optimizers. Thread-compatible; not while a
// step is under way.
class Checkpointer {
 public:
  // Errors of the workers, each within the agent's default timeout.
  static absl::StatusOr<std::unique_ptr<Checkpointer>> Make(
      rpc::Agent& agent, const CheckpointOptions& options,
      const std::vector<SavedModule>& modules,
      const std::vector<SavedOptimizer>& optimizers);

  // After modules have moved (RRef::MoveTo) and optimizers were made anew: the
  // workers are those where they are now. A save under way ends first.
  absl::Status MakeAnew();

  // Returns when all workers have copied their state to host memory, and
  // `trainer`, the trainer's own, is copied, too. Workers then write beside the
  // steps that follow. At most one save is under way, and errors come out, as
  // CheckpointWriter says.
  absl::Status Save(int64_t step, const NamedTensors& trainer = {});
  absl::Status Wait() { return writer_.Wait(); }

  struct Resumed {
    int64_t step = 0;
    NamedTensors trainer;  // as Save was given it
  };
  // From the newest checkpoint, or as ResumeFrom says. InvalidArgument where it
  // has tensors that no module or optimizer here has, or lacks some; modules
  // are to be given up, or resumed again, after an error.
  absl::StatusOr<Resumed> Resume(IfBroken if_broken);

  // The modules' parameters and buffers alone, of a plain safetensors file as
  // ExportPart and others write it. Errors as Resume, and NotFound.
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
  CheckpointWriter writer_;
};

}  // namespace baton::dist
