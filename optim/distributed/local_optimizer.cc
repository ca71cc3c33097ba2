// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "optim/distributed/local_optimizer.h"

#include <cmath>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/step_count.h"
#include "core/ops/arithmetic.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// Divides in f32 at least.
Gradient Unscaled(const Gradient& gradient, double loss_scale) {
  if (loss_scale == 0 || !gradient.defined()) return gradient;
  const Tensor& scaled = gradient.values();
  const DType dtype = SizeOf(scaled.dtype()) < SizeOf(DType::kF32)
                          ? DType::kF32
                          : scaled.dtype();
  return gradient.WithValues(ops::MulScalar(scaled.To(dtype), 1 / loss_scale));
}

}  // namespace

absl::Status StepRequest::Check() const {
  return CatchErrors(
      [&] { optim::Clip{.norm = clip_norm, .value = clip_value}.Check(); });
}

StepRequest StepRequest::WithNorm(double scaled) const {
  StepRequest known = *this;
  known.norm = loss_scale == 0 ? scaled : scaled / loss_scale;
  known.skip = loss_scale != 0 && !std::isfinite(scaled);
  return known;
}

OtherStepSettings StepRequest::ForOthers() const {
  OtherStepSettings settings{
      .rate = rate_factor, .limit = clip_value, .skip = skip};
  if (loss_scale != 0) settings.gradient /= loss_scale;
  if (norm.has_value())
    settings.gradient *= optim::Clip{.norm = clip_norm}.FactorOf(*norm);
  return settings;
}

OptimizerHost::OptimizerHost(
    std::vector<std::shared_ptr<rpc::ObjectLock>> locks,
    std::unique_ptr<optim::Optimizer> optimizer)
    : locks_(std::move(locks)), optimizer_(std::move(optimizer)) {}

absl::StatusOr<OptimizerHost::Parameters> OptimizerHost::Gather(
    const std::vector<OptimizerShare>& shares, size_t groups) {
  Parameters all;
  all.values.resize(groups);
  all.names.resize(groups);
  std::unordered_set<const void*> seen;
  for (const OptimizerShare& share : shares) {
    const auto group = static_cast<size_t>(share.group);
    if (share.group < 0 || group >= groups) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no group ", share.group));
    }
    ASSIGN_OR_RETURN(auto list, share.list.LocalValue());
    all.locks.push_back(list->lock);
    for (size_t i = 0; i < list->parameters.size(); ++i) {
      const Variable& parameter = list->parameters[i];
      if (!seen.insert(parameter.id()).second) continue;
      all.values[group].push_back(parameter);
      all.names[group].push_back(share.prefix + list->names[i]);
    }
  }
  return all;
}

double OptimizerHost::SquareNorm(const optim::GradientOf& gradient_of) const {
  std::vector<Tensor> gradients;
  for (const Variable& parameter : optimizer_->parameters()) {
    const Gradient gradient = gradient_of(parameter);
    if (gradient.defined()) gradients.push_back(gradient.values());
  }
  return optim::Optimizer::SquareNorm(gradients).Item();
}

Future<void> OptimizerHost::Step(const rpc::CallContext& call,
                                 std::shared_ptr<ContextState> context,
                                 const StepRequest& request) {
  const size_t groups = optimizer_->groups();
  if (request.rates.size() != groups) {
    return ReadyFuture<void>(absl::InvalidArgumentError(absl::StrCat(
        request.rates.size(), " learning rates for ", groups, " groups")));
  }
  const auto others = [context, request] {
    return context->StepOthers(request.ForOthers());
  };
  if (request.skip) return others();
  return rpc::WithObjects(call, locks_, rpc::Access::kExclusive,
                          [this, context, request, &agent = call.agent()] {
                            StepHeld(
                                [&](const Variable& parameter) {
                                  return Unscaled(
                                      context->GradientOf(parameter),
                                      request.loss_scale);
                                },
                                request);
                            CountStep(agent);
                          })
      .Then(others);
}

void OptimizerHost::StepHeld(const optim::GradientOf& gradient_of,
                             const StepRequest& request,
                             const optim::SkipOn& skip_on) {
  for (size_t i = 0; i < request.rates.size(); ++i)
    optimizer_->set_lr(i, request.rates[i]);
  optimizer_->set_clip(
      {.norm = request.clip_norm, .value = request.clip_value});
  optimizer_->Step(gradient_of, skip_on, request.norm);
}

// The trainer keeps the steps and rates of the whole optimizer.
optim::StateDict OptimizerHost::StateHeld() const {
  optim::StateDict state = optimizer_->SharedState();
  std::erase_if(state, [](const auto& entry) {
    return optim::Rates::IsKey(entry.first);
  });
  return state;
}

absl::Status OptimizerHost::LoadStateHeld(const optim::StateDict& state) {
  return optimizer_->ImportState(state);
}

Future<optim::StateDict> OptimizerHost::State(const rpc::CallContext& call) {
  return rpc::WithObjects(call, locks_, rpc::Access::kShared, [this] {
    optim::StateDict state = StateHeld();
    for (auto& [key, tensor] : state) tensor = tensor.Clone();
    return state;
  });
}

Future<void> OptimizerHost::LoadState(const rpc::CallContext& call,
                                      const optim::StateDict& state) {
  return rpc::WithObjects(call, locks_, rpc::Access::kExclusive,
                          [this, state] { return LoadStateHeld(state); });
}

}  // namespace baton::dist
