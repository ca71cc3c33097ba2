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
  // May include self. Agent::AddPeer adds more.
  std::vector<WorkerInfo> peers{};
  // The most handlers that run at a time; one that waits in Await does not
  // count.
  int worker_threads = 4;
  // The timeout of calls that name none; kNoLimit for no timeout.
  std::chrono::milliseconds default_timeout{60'000};
  // How long a worker whose connection broke may stay away. After that, its
  // handles to objects here are dropped, and handles here to objects that it
  // owned fail. At least kLeastLease (rpc/worker.h). JoinCluster passes the
  // same lease to the transport, which uses it to detect silent workers, and to
  // the rendezvous.
  std::chrono::milliseconds lease{2'000};
  // Ownership messages that are not acknowledged within this time are sent
  // again.
  std::chrono::milliseconds resend_after{300};
  // The most calls under way, made and served here; any further call fails with
  // ResourceExhausted.
  size_t max_outgoing_calls = 100'000;
  size_t max_incoming_calls = 100'000;
  // The same limit for calls from one other worker, and for the bytes of their
  // arguments.
  size_t max_calls_per_peer = 50'000;
  size_t max_call_bytes_per_peer = size_t{16} << 30;
  // The most refusals and acknowledgements that may wait to be sent to one
  // other worker. A worker that reads its messages never gets near it; beyond
  // it the connection is closed.
  size_t max_replies_per_peer = 100'000;
  // Runs before the first message is delivered; other layers attach to the
  // agent here.
  std::function<void(Agent&)> on_start{};
  // Runs once, at the end of the shutdown. JoinCluster uses it to leave the
  // rendezvous, which frees the name.
  std::function<void()> on_stop{};
};

namespace internal {
// Checks what can be checked before the agent meets other workers: returns
// InvalidArgument for the number of threads and the lease, or the registry's
// own status.
absl::Status CheckAgent(const AgentOptions& options, const Registry& registry);
}  // namespace internal

struct ShutdownOptions {
  // Limit for the whole shutdown.
  std::chrono::milliseconds timeout{30'000};
  enum class Mode {
    kGraceful,  // finish calls, release handles, wait for others to do so
    kNow,       // fail the calls under way
  } mode = Mode::kGraceful;
  // How long a worker whose connection is lost may stay away during the
  // shutdown. After that its handles count as released.
  std::chrono::milliseconds lost_grace{300};
};

// One worker of a cluster: it makes calls, serves calls and owns objects. A
// process may have several agents. An agent is built on a Transport and never
// blocks the transport's threads. Thread-safe.
class Agent {
 public:
  // Fails if the registry or the options are invalid or the transport cannot
  // start.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(
      AgentOptions options, Registry registry,
      std::unique_ptr<Transport> transport);
  // Shuts down at once if Shutdown was not called. Must not run on an agent's
  // thread.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Calls a function at `to`, which may be this worker:
  //   agent.Async<&Add>("bob", {.timeout = 1s}, x, y)
  // CallOptions, a scope or a CallContext may precede the arguments. A Future
  // may take the place of any argument; the call is then sent when all are
  // ready. Arguments that are moved into the call are gone once it is sent,
  // even if it fails.
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

  // Calls a function and leaves the result at `to`.
  template <auto kFunction, typename... Args>
  auto Remote(const Target& to, Args&&... args)
      -> RRef<internal::ResultType<kFunction>> {
    return RRef<internal::ResultType<kFunction>>(
        internal::RemoteCall<kFunction>(SpecOf<kFunction>(to),
                                        std::forward<Args>(args)...));
  }

  // Like Async, but a result of more than 64 KiB stays at `to`.
  template <auto kFunction, typename... Args>
  auto AsyncOrRemote(const Target& to, Args&&... args) {
    using Result = ValueOrRRef<internal::ResultType<kFunction>>;
    internal::CallSpec spec = SpecOf<kFunction>(to);
    spec.may_stay = true;
    return internal::AsyncCall<kFunction, Result>(std::move(spec),
                                                  std::forward<Args>(args)...);
  }

  // Returns an uninitialized tensor to be filled and moved into a call to
  // `worker`:
  //   ASSIGN_OR_RETURN(Tensor x, agent.EmptyFor("bob", {1 << 20}));
  //   ...
  //   agent.Async<&Sum>("bob", std::move(x))
  // If possible, the tensor lies in memory shared with `worker` and is sent
  // without a copy. That requires that the call has the only handle to its
  // storage (no other Tensor or Variable, no view, no autograd graph) and sends
  // all of it, densely packed. Otherwise, and if there is no shared memory for
  // it (another machine, no connection yet, no room, a GPU, 16 KB or less), it
  // is an ordinary tensor. Until it is sent or dropped it uses part of the
  // memory for tensors on their way to `worker`. Returns NotFound for an
  // unknown worker, and InvalidArgument where Tensor::Empty throws.
  absl::StatusOr<Tensor> EmptyFor(const Target& worker, const Shape& shape,
                                  const TensorOptions& options = {}) const;

  const WorkerInfo& self() const;
  // The workers of the cluster by rank, including self, without those that left
  // or were given up.
  std::vector<WorkerInfo> workers() const;
  absl::StatusOr<WorkerInfo> Find(const Target& worker) const;
  // Makes `peer` known. If a peer with this name but another incarnation is
  // known, `peer` replaces it, and the old one's objects and calls are lost.
  void AddPeer(const WorkerInfo& peer);
  void RemovePeer(const std::string& name);
  // Removes a worker that is no longer a member of the cluster: the agent
  // forgets it at once, or, if it is connected, when its connection ends.
  // `event` names the worker and says how it ended. An event for an incarnation
  // other than the current one is ignored.
  void StrikeOff(const MemberEvent& event);
  // Calls `watcher` with each change of the other workers from now on, one
  // event at a time. It runs on a thread that also delivers answers, so it must
  // not block. A watcher is never removed.
  using MemberWatcher = std::function<void(const MemberEvent&)>;
  void WatchMembers(MemberWatcher watcher);

  // True from the beginning of Shutdown on.
  bool shutting_down() const;
  std::chrono::milliseconds default_timeout() const;
  void set_default_timeout(std::chrono::milliseconds timeout);
  void SetCallScopeFactory(std::shared_ptr<CallScopeFactory> factory);

  // State that another layer keeps per agent, looked up by its type. service()
  // returns null before SetService.
  template <typename S>
  void SetService(std::shared_ptr<S> service) {
    SetServiceById(internal::TypeId<S>(), std::move(service));
  }
  template <typename S>
  std::shared_ptr<S> service() const {
    return std::static_pointer_cast<S>(ServiceById(internal::TypeId<S>()));
  }

  // The pool that runs handlers, and a timer, for other layers. Valid until
  // destruction.
  Executor& executor() const;
  Timer& timer() const;

  DebugInfo GetDebugInfo() const;
  // Adds a table of another layer to GetDebugInfo under `name`. `view` is
  // called on any thread, until the agent is destroyed.
  void AddView(const std::string& name, std::function<View()> view);
  // Records calls and other work of this worker while tracing is on. Never
  // null.
  const std::shared_ptr<Tracer>& tracer() const;
  // Waits until no call is under way and this worker neither owns an object nor
  // holds one of another worker. Returns false after `timeout`.
  bool AwaitIdle(std::chrono::milliseconds timeout) const;

  // Shuts the agent down within the options' timeout. Returns OK if all calls
  // finished and all handles were released, else a status that lists what was
  // left. From then on every call fails with FailedPrecondition. A second
  // Shutdown does nothing. Must not run on an agent's thread.
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

// Makes an object at `worker` by calling a function that returns one. The
// future is ready when the object exists.
template <auto kFunction, typename... Args>
auto CreateBy(Agent& agent, const Target& worker, Args&&... args)
    -> Future<RRef<internal::ResultType<kFunction>>> {
  const auto rref =
      agent.Remote<kFunction>(worker, std::forward<Args>(args)...);
  return internal::CreationOf(rref.handle()).Then([rref] { return rref; });
}

// Makes a T at `worker` with the constructor that its Exports list, or with
// T::Make. The future is ready when the object exists.
template <typename T, typename... Args>
Future<RRef<T>> Create(Agent& agent, const Target& worker, Args&&... args) {
  constexpr auto kMake = internal::MakerOf<T>();
  using Index = internal::IndexIn<kMake, T>;
  static_assert(Index::kFound,
                "the class's Exports list neither a constructor nor T::Make");
  static_assert(std::is_same_v<internal::ResultType<kMake>, T>,
                "T::Make must give StatusOr<unique_ptr<T>>, unique_ptr<T> or "
                "shared_ptr<T>");
  RRef<T> rref(internal::RemoteCall<kMake>(
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
