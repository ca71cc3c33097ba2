// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "models/distributed/module.h"
#include "models/distributed/stage.h"
#include "models/distributed/step_plan.h"
#include "rpc/agent.h"
#include "rpc/unregistered.h"

namespace baton::dist {

namespace module_calls {

template <typename L>
absl::StatusOr<std::shared_ptr<StageLoss>> LossAt(const RRef<L>& loss) {
  ASSIGN_OR_RETURN(auto local, loss.LocalValue());
  ASSIGN_OR_RETURN(auto lock, loss.LocalLock());
  return std::make_shared<StageLoss>(
      StageLoss{std::move(local), std::move(lock)});
}

}  // namespace module_calls

// Registers L, an nn::LossModule whose Exports include Make, with everything
// that a pipeline and an optimizer need. Every worker's registry needs this;
// dist::Join<L> does it.
template <typename L>
void RegisterLoss(rpc::Registry& registry) {
  RegisterModule<L>(registry);
  registry.AddFunction<&module_calls::LossAt<L>>();
}

// The loss that a pipeline minimizes: a built-in one, or a module at the worker
// of the last stage:
//
//   ASSIGN_OR_RETURN(auto loss, dist::Module<MyLoss>::Create(
//       agent, back.owner().name, options).Await());
//   dist::Pipeline::Make(agent, {.loss = loss}, {front, back});
//   dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.1},
//                                   {front, back, loss});
//
// Value type.
class PipelineLoss {
 public:
  // NOLINTBEGIN(google-explicit-constructor): pipeline options name a loss as
  // is
  PipelineLoss(Loss kind) : kind_(kind) {}
  template <typename L>
  PipelineLoss(const RRef<L>& loss)
      : kind_(Loss::kOwn),
        owner_([loss]() -> const rpc::WorkerInfo& { return loss.owner(); }),
        find_([loss](rpc::Agent& agent) {
          const std::string type = rpc::internal::TypeName<L>();
          return rpc::OrNameMissing(
              rpc::CreateBy<&module_calls::LossAt<L>>(agent, loss.owner(),
                                                      loss),
              absl::StrCat("loss ", type),
              absl::StrCat("call dist::RegisterLoss<", type,
                           ">(registry) before joining"));
        }) {}
  template <typename L>
  PipelineLoss(const Module<L>& loss) : PipelineLoss(loss.ref()) {}
  // NOLINTEND(google-explicit-constructor)

  Loss kind() const { return kind_; }
  // Returns the module for the last stage, which is at `worker`; nullopt for a
  // built-in loss. Returns InvalidArgument if the module is at another worker.
  absl::StatusOr<std::optional<RRef<StageLoss>>> At(
      rpc::Agent& agent, const rpc::WorkerInfo& worker) const;

 private:
  Loss kind_;
  // The owner of the module; empty for a built-in loss.
  std::function<const rpc::WorkerInfo&()> owner_;
  std::function<Future<RRef<StageLoss>>(rpc::Agent&)> find_;
};

}  // namespace baton::dist
