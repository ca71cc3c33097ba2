// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/agent_peers.h"

#include <memory>
#include <utility>

#include "autograd/distributed/context.h"
#include "autograd/distributed/parameter_list.h"
#include "autograd/distributed/remote_hooks.h"

namespace baton::dist {
namespace autograd_calls {

// AgentPeers calls these functions at other workers; their names appear in
// errors.

absl::StatusOr<std::shared_ptr<Engine>> EngineAt(const rpc::CallContext& call) {
  std::shared_ptr<Engine> engine = call.agent().service<Engine>();
  if (engine == nullptr) {
    return absl::FailedPreconditionError(
        "this worker has no distributed autograd: call dist::Attach");
  }
  return engine;
}

// Returns the result of `call` with the engine, or an error if there is none.
template <typename T, typename Call>
Future<T> AskEngine(const rpc::CallContext& context, Call call) {
  auto engine = EngineAt(context);
  if (!engine.ok()) return ReadyFuture<T>(engine.status());
  return call(**engine);
}

Future<Marking> MarkGraph(rpc::CallContext& call, const MarkRequest& request) {
  return AskEngine<Marking>(call, [&](Engine& engine) {
    return engine.OnMark(call.caller().name, request);
  });
}

absl::StatusOr<WantedPlaces> WantGradients(rpc::CallContext& call,
                                           const WantRequest& request) {
  ASSIGN_OR_RETURN(auto engine, EngineAt(call));
  ASSIGN_OR_RETURN(auto list, request.parameters.LocalValue());
  return engine->OnWant(call.caller().name, request.pass, *list);
}

absl::Status TakeGradient(rpc::CallContext& call, GradientMessage message) {
  ASSIGN_OR_RETURN(auto engine, EngineAt(call));
  return engine->OnGradient(call.caller().name, std::move(message));
}

Future<std::vector<Tensor>> FinishBackward(rpc::CallContext& call,
                                           const FinishRequest& request) {
  return AskEngine<std::vector<Tensor>>(call, [&](Engine& engine) {
    return engine.OnFinish(call.caller().name, request);
  });
}

Future<std::string> AbortBackward(rpc::CallContext& call,
                                  const ContextId& context, PassId pass,
                                  const absl::Status& why) {
  return AskEngine<std::string>(
      call, [&](Engine& engine) { return engine.OnAbort(context, pass, why); });
}

Future<void> MoveGradients(rpc::CallContext& call, const ContextId& context,
                           uint64_t number) {
  return AskEngine<void>(call, [&](Engine& engine) {
    return engine.OnMove(call.caller().name, context, number);
  });
}

Future<void> ReleaseContext(rpc::CallContext& call, const ContextId& context,
                            const std::string& why) {
  return AskEngine<void>(call, [&](Engine& engine) {
    return engine.OnRelease(call.caller().name, context, why);
  });
}

absl::Status JoinContext(rpc::CallContext& call, const ContextId& context) {
  ASSIGN_OR_RETURN(auto engine, EngineAt(call));
  return engine->OnJoin(call.caller().name, context);
}

}  // namespace autograd_calls

void Register(rpc::Registry& registry) {
  registry.AddFunction<&autograd_calls::MarkGraph>()
      .AddFunction<&autograd_calls::WantGradients>()
      .AddFunction<&autograd_calls::TakeGradient>()
      .AddFunction<&autograd_calls::FinishBackward>()
      .AddFunction<&autograd_calls::AbortBackward>()
      .AddFunction<&autograd_calls::MoveGradients>()
      .AddFunction<&autograd_calls::ReleaseContext>()
      .AddFunction<&autograd_calls::JoinContext>();
  registry.Add<RemoteHooks>();
  RegisterParameters<Variable>(registry);
}

Future<Marking> AgentPeers::Mark(const std::string& to,
                                 const MarkRequest& request) {
  return agent_->Async<&autograd_calls::MarkGraph>(
      to, rpc::CallOptions{.timeout = request.pass.time_left}, request);
}

Future<WantedPlaces> AgentPeers::Want(const std::string& to,
                                      const WantRequest& request) {
  return agent_->Async<&autograd_calls::WantGradients>(
      to, rpc::CallOptions{.timeout = request.pass.time_left}, request);
}

Future<void> AgentPeers::Gradient(const std::string& to,
                                  const GradientMessage& message,
                                  std::chrono::milliseconds timeout) {
  return agent_->Async<&autograd_calls::TakeGradient>(
      to, rpc::CallOptions{.timeout = timeout}, message);
}

Future<std::vector<Tensor>> AgentPeers::Finish(const std::string& to,
                                               const FinishRequest& request) {
  return agent_->Async<&autograd_calls::FinishBackward>(
      to, rpc::CallOptions{.timeout = request.pass.time_left}, request);
}

Future<std::string> AgentPeers::Abort(const std::string& to,
                                      const ContextId& context, PassId pass,
                                      const absl::Status& why,
                                      std::chrono::milliseconds timeout) {
  return agent_->Async<&autograd_calls::AbortBackward>(
      to, rpc::CallOptions{.timeout = timeout}, context, pass, why);
}

Future<void> AgentPeers::MoveToGrad(const std::string& to,
                                    const ContextId& context, uint64_t number) {
  return agent_->Async<&autograd_calls::MoveGradients>(to, context, number);
}

Future<void> AgentPeers::Release(const std::string& to,
                                 const ContextId& context,
                                 const std::string& why) {
  // There is no time limit: a worker that has no free thread yet still has its
  // share.
  return agent_->Async<&autograd_calls::ReleaseContext>(
      to, rpc::CallOptions{.timeout = kNoLimit}, context, why);
}

Future<void> AgentPeers::Join(const ContextId& context) {
  return agent_->Async<&autograd_calls::JoinContext>(
      context.root, rpc::CallOptions{.timeout = kNoLimit}, context);
}

}  // namespace baton::dist
