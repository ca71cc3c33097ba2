// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "models/distributed/module.h"
#include "models/distributed/stage.h"
#include "rpc/agent.h"

namespace baton::dist {

// A module at any worker, as one stage of a pipeline.
class StageModule {
 public:
  // NOLINTBEGIN(google-explicit-constructor): callers list modules as they are
  template <typename M>
  StageModule(const RRef<M>& module)
      : owner_([module]() -> const rpc::WorkerInfo& { return module.owner(); }),
        make_([module](rpc::Agent& agent, const StageSpec& spec,
                       const std::map<int32_t, RRef<Stage>>& behind,
                       const std::optional<RRef<StageLoss>>& loss) {
          return agent.Remote<&module_calls::MakeStage<M>>(
              module.owner(), module, spec, behind, loss);
        }) {}
  template <typename M>
  StageModule(const Module<M>& module) : StageModule(module.ref()) {}
  // NOLINTEND(google-explicit-constructor)

  RRef<Stage> MakeStage(
      rpc::Agent& agent, const StageSpec& spec,
      const std::map<int32_t, RRef<Stage>>& behind,
      const std::optional<RRef<StageLoss>>& loss = std::nullopt) const {
    return make_(agent, spec, behind, loss);
  }

  const rpc::WorkerInfo& owner() const { return owner_(); }

 private:
  // A function because the module may move.
  std::function<const rpc::WorkerInfo&()> owner_;
  std::function<RRef<Stage>(rpc::Agent&, const StageSpec&,
                            const std::map<int32_t, RRef<Stage>>&,
                            const std::optional<RRef<StageLoss>>&)>
      make_;
};

}  // namespace baton::dist
