// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/context.h"

#include <utility>

#include "autograd/distributed/agent_peers.h"
#include "autograd/distributed/step_count.h"

namespace baton::dist {
namespace {

// This is added to the backward's own deadline, whose error message is better.
constexpr std::chrono::milliseconds kGrace{5000};

std::chrono::milliseconds LimitOf(const BackwardOptions& options) {
  return options.timeout == kNoLimit ? kNoLimit : options.timeout + kGrace;
}

std::shared_ptr<Engine> EngineOf(const rpc::Agent& agent) {
  std::shared_ptr<Engine> engine = agent.service<Engine>();
  Require(engine != nullptr, "context", "worker ", agent.self().name,
          " has no distributed autograd: call dist::Attach(agent) first");
  return engine;
}

}  // namespace

void Attach(rpc::Agent& agent) {
  auto engine = std::make_shared<Engine>(agent.self(), &agent.executor(),
                                         std::make_shared<AgentPeers>(&agent));
  agent.SetService(engine);
  agent.SetCallScopeFactory(engine);
  agent.AddView("contexts", [engine] { return engine->View(); });
  const auto steps = std::make_shared<StepCount>();
  agent.SetService(steps);
  agent.AddView("training", [steps] { return steps->View(); });
  agent.WatchMembers(
      [weak = std::weak_ptr<Engine>(engine)](const rpc::MemberEvent& event) {
        if (event.kind == rpc::MemberEvent::Kind::kJoined) return;
        if (auto self = weak.lock()) self->OnWorkerLost(event.worker.name);
      });
}

std::vector<ContextId> OpenContexts(const rpc::Agent& agent) {
  return EngineOf(agent)->contexts();
}

Context::Context(rpc::Agent& agent)
    : agent_(&agent), engine_(EngineOf(agent)), state_(engine_->NewContext()) {}

Context::~Context() {
  // Nobody waits for this; workers that cannot be told find out by themselves.
  Release().OnReady([](const absl::Status&) {});
}

absl::Status Context::Backward(const Variable& loss,
                               const BackwardOptions& options) {
  return Backward(std::vector<Variable>{loss}, {}, options);
}

absl::Status Context::Backward(const std::vector<Variable>& roots,
                               const std::vector<Tensor>& grad_outputs,
                               const BackwardOptions& options) {
  return BackwardAsync(roots, grad_outputs, options).Await(LimitOf(options));
}

Future<void> Context::BackwardAsync(const std::vector<Variable>& roots,
                                    const std::vector<Tensor>& grad_outputs,
                                    const BackwardOptions& options) {
  return engine_->Backward(state_, roots, grad_outputs, options);
}

Future<GradientPlace> GradInput::Find(rpc::Agent& agent) const {
  if (!source_.has_value())
    return ReadyFuture<GradientPlace>(GradientPlace{.here = value_});
  return source_->Listed(agent).Then(
      [owner = source_->owner().name](const RRef<ParameterList>& list) {
        return GradientPlace{.worker = owner, .there = list};
      });
}

absl::StatusOr<std::vector<Tensor>> Context::Grad(
    const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
    const std::vector<Tensor>& grad_outputs, const BackwardOptions& options) {
  return GradAsync(roots, inputs, grad_outputs, options)
      .Await(LimitOf(options));
}

Future<std::vector<Tensor>> Context::GradAsync(
    const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
    const std::vector<Tensor>& grad_outputs, const BackwardOptions& options) {
  std::vector<Future<GradientPlace>> places;
  for (const GradInput& input : inputs) places.push_back(input.Find(*agent_));
  return WaitAll(places).Then(
      [engine = engine_, state = state_, roots, grad_outputs,
       options](const std::vector<GradientPlace>& found) {
        return engine->Gradients(state, roots, found, grad_outputs, options);
      });
}

Tensor Context::GradientOf(const Variable& leaf) const {
  return state_->GradientOf(leaf).Dense();
}

std::vector<std::pair<Variable, Tensor>> Context::Gradients() const {
  std::vector<std::pair<Variable, Tensor>> all;
  for (const auto& [leaf, grad] : state_->Gradients())
    all.emplace_back(leaf, grad.Dense());
  return all;
}

void Context::WriteToGrad() const {
  for (auto& [leaf, grad] : state_->Gradients()) leaf.AccumulateGrad(grad);
}

Future<void> Context::MoveToGrad() { return engine_->MoveToGrad(state_); }

Future<void> Context::Release() { return engine_->Release(id()); }

absl::StatusOr<std::shared_ptr<ContextState>> ContextOf(
    const rpc::CallContext& call) {
  auto state = std::dynamic_pointer_cast<ContextState>(call.call_scope());
  if (state == nullptr) {
    return absl::FailedPreconditionError(
        "the call came without a dist::Context");
  }
  return state;
}

}  // namespace baton::dist
