// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/timer.h"
#include "rpc/call.h"
#include "rpc/call_options.h"
#include "rpc/call_scope.h"
#include "rpc/debug_info.h"
#include "rpc/registry.h"
#include "rpc/rref.h"
#include "rpc/tracer.h"
#include "rpc/transport.h"

namespace baton::rpc {

struct AgentOptions {
  WorkerInfo self;
  std::vector<WorkerInfo> peers{};  // may hold self; more with Agent::AddPeer
  // Handlers that run at a time; those that wait in Await do not count.
  int worker_threads = 4;
  // Of calls that name none; kNoLimit for none.
  std::chrono::milliseconds default_timeout{60'000};
  // How long a worker whose connection broke may stay away before what it held
  // is given up, and with it the handles to what it owned: kLeastLease
  // (rpc/lease.h) or more. JoinCluster gives the same lease to the transport,
  // for workers that are silent, and to the rendezvous.
  std::chrono::milliseconds lease{2'000};
  // When ownership messages that nobody acknowledged are sent again.
  std::chrono::milliseconds resend_after{300};
  // Calls beyond these fail with ResourceExhausted.
  size_t max_outgoing_calls = 100'000;
  size_t max_incoming_calls = 100'000;
  // The same for those of one other worker, and for the bytes of their
  // arguments.
  size_t max_calls_per_peer = 50'000;
  size_t max_call_bytes_per_peer = size_t{16} << 30;
  // Refusals and acknowledgements that one other worker leaves unread: more
  // than one that reads ever does. At more its connection is ended.
  size_t max_replies_per_peer = 100'000;
  // Runs before the first message is delivered: other layers attach here.
  std::function<void(Agent&)> on_start{};
  // Runs once, at the end of the shutdown: tells others that the name is free.
  std::function<void()> on_stop{};
};

struct ShutdownOptions {
  // Of the whole shutdown.
  std::chrono::milliseconds timeout{30'000};
  enum class Mode {
    kGraceful,  // finish calls, give back handles, wait for others to do so
    kNow,       // fail what is under way
  } mode = Mode::kGraceful;
  // How long a worker whose connection is lost may stay away: what it held is
  // given up then, as if it had been given back.
  std::chrono::milliseconds lost_grace{300};
};

// One worker of a cluster: makes calls, serves them, owns objects. A process
// may have several. Built on a Transport; never blocks its threads.
// Thread-safe.
class Agent {
 public:
  // Fails when the registry or the options are wrong or the transport cannot
  // start.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(
      AgentOptions options, Registry registry,
      std::unique_ptr<Transport> transport);
  // Shuts down at once if Shutdown was not called. Not on an agent's thread.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Calls a function at `to`, which may be this worker too:
  //   agent.Async<&Add>("bob", {.timeout = 1s}, x, y)
  // CallOptions, a scope or a CallContext may precede the arguments; a Future
  // may stand for any of these. Arguments that are moved into the call are gone
  // once it is sent, whatever becomes of it.
  template <auto kFunction, typename... Args>
  auto Async(const Target& to, Args&&... args) {
    return internal::AsyncCall<kFunction>(SpecOf<kFunction>(to),
                                          std::forward<Args>(args)...);
  }
  template <auto kFunction, typename... Args>
  auto Async(const Target& to, const CallOptions& options, Args&&... args) {
    return internal::AsyncCall<kFunction>(SpecOf<kFunction>(to), options,
                                          std::forward<Args>(args)...);
  }

  // The same, leaving the result at `to`.
  template <auto kFunction, typename... Args>
  auto Remote(const Target& to, Args&&... args)
      -> RRef<internal::ResultType<kFunction>> {
    return RRef<internal::ResultType<kFunction>>(
        internal::RemoteCall<kFunction>(SpecOf<kFunction>(to),
                                        std::forward<Args>(args)...));
  }

  // As Async; but a result of more than 64 KiB stays at `to`.
  template <auto kFunction, typename... Args>
  auto AsyncOrRemote(const Target& to, Args&&... args) {
    using Result = ValueOrRRef<internal::ResultType<kFunction>>;
    internal::CallSpec spec = SpecOf<kFunction>(to);
    spec.may_stay = true;
    return internal::AsyncCall<kFunction, Result>(std::move(spec),
                                                  std::forward<Args>(args)...);
  }

  // An uninitialised tensor to be filled and moved into a call to `worker`:
  //   ASSIGN_OR_RETURN(Tensor x, agent.EmptyFor("bob", {1 << 20}));
  //   ...
  //   agent.Async<&Sum>("bob", std::move(x))
  // It lies, where there is such a place now, in memory that `worker` sees, and
  // then travels without a copy: provided that nothing else has it when the
  // call is made, neither another Tensor or Variable, nor a view, nor a graph
  // that needs it, and that it is whole and without gaps. In every other case,
  // and where there is no such place (another machine, no connection yet, no
  // room, a GPU, 16 KB or less), it is a tensor like any other. Until it is
  // sent or dropped it takes up room of the tensors on their way to `worker`.
  // NotFound for an unknown worker; InvalidArgument where Tensor::Empty throws.
  absl::StatusOr<Tensor> EmptyFor(const Target& worker, const Shape& shape,
                                  const TensorOptions& options = {}) const;

  const WorkerInfo& self() const;
  // Self among them, by rank; none that left or was given up.
  std::vector<WorkerInfo> workers() const;
  absl::StatusOr<WorkerInfo> Find(const Target& worker) const;
  // A peer of a known name and another incarnation replaces the old one, whose
  // objects and calls are then lost.
  void AddPeer(const WorkerInfo& peer);
  void RemovePeer(const std::string& name);
  // It is no member of the cluster any more: it is forgotten, at once or when
  // its connection ends. `event` says how it ended; of another incarnation than
  // the present one it means nothing.
  void StrikeOff(const MemberEvent& event);
  // `watcher` hears what becomes of the others from now on, one event after the
  // other, on a thread that answers wait for: it must not wait itself. Never
  // removed.
  using MemberWatcher = std::function<void(const MemberEvent&)>;
  void WatchMembers(MemberWatcher watcher);

  std::chrono::milliseconds default_timeout() const;
  void set_default_timeout(std::chrono::milliseconds timeout);
  void SetCallScopeFactory(std::shared_ptr<CallScopeFactory> factory);

  // State that another layer keeps per agent, found by its type; null before.
  template <typename S>
  void SetService(std::shared_ptr<S> service) {
    SetServiceById(internal::TypeId<S>(), std::move(service));
  }
  template <typename S>
  std::shared_ptr<S> service() const {
    return std::static_pointer_cast<S>(ServiceById(internal::TypeId<S>()));
  }

  // Where handlers run, and a clock; for other layers. Valid until destruction.
  Executor& executor() const;
  Timer& timer() const;

  DebugInfo GetDebugInfo() const;
  // What another layer shows of itself in GetDebugInfo, by name: `view` is
  // called on any thread, until the agent is destroyed.
  void AddView(const std::string& name, std::function<View()> view);
  // What happens here, while somebody wants to know. Never null.
  const std::shared_ptr<Tracer>& tracer() const;
  // True once no call is under way and nothing is owned here or held elsewhere
  // by this worker; false after `timeout`.
  bool AwaitIdle(std::chrono::milliseconds timeout) const;

  // Ends this worker's part, within the options' timeout: OK when everything
  // was finished and given back, else a status that lists what was left. From
  // then on every call fails with FailedPrecondition. The second call does
  // nothing. Not on an agent's thread.
  absl::Status Shutdown(const ShutdownOptions& options = {});

  const std::shared_ptr<internal::AgentCore>& core() const { return core_; }

 private:
  explicit Agent(std::shared_ptr<internal::AgentCore> core);

  template <auto kFunction>
  internal::CallSpec SpecOf(const Target& to) {
    static_assert(std::is_void_v<
                      typename internal::Signature<decltype(kFunction)>::Class>,
                  "a method needs its object: use rref.Async<&T::Method>(...)");
    return {.agent = core_,
            .to = to,
            .method = {internal::FunctionId<kFunction>(), 0},
            .name = internal::FunctionName<kFunction>(),
            .object = nullptr,
            .result = nullptr};
  }
  void SetServiceById(uint64_t id, std::shared_ptr<void> service);
  std::shared_ptr<void> ServiceById(uint64_t id) const;

  std::shared_ptr<internal::AgentCore> core_;
};

// Makes an object at `worker` by a function that gives one; done when it is
// there.
template <auto kFunction, typename... Args>
auto CreateBy(Agent& agent, const Target& worker, Args&&... args)
    -> Future<RRef<internal::ResultType<kFunction>>> {
  const auto rref =
      agent.Remote<kFunction>(worker, std::forward<Args>(args)...);
  return internal::CreationOf(rref.handle()).Then([rref] { return rref; });
}

// Makes a T at `worker` with T::Make; done when it is there.
template <typename T, typename... Args>
Future<RRef<T>> Create(Agent& agent, const Target& worker, Args&&... args) {
  using Index = internal::IndexIn<&T::Make, typename T::Exports>;
  static_assert(Index::kFound, "T::Make is not in the class's Exports");
  static_assert(std::is_same_v<internal::ResultType<&T::Make>, T>,
                "T::Make must give StatusOr<unique_ptr<T>>, unique_ptr<T> or "
                "shared_ptr<T>");
  RRef<T> rref(internal::RemoteCall<&T::Make>(
      {.agent = agent.core(),
       .to = worker,
       .method = {internal::TypeId<T>(), Index::kIndex},
       .name = internal::TypeName<T>() + "::Make",
       .object = nullptr,
       .result = nullptr},
      std::forward<Args>(args)...));
  return internal::CreationOf(rref.handle()).Then([rref] { return rref; });
}

}  // namespace baton::rpc
