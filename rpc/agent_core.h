// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "rpc/agent.h"
#include "rpc/frames.h"
#include "rpc/handle.h"
#include "rpc/inbox.h"
#include "rpc/object_lock.h"
#include "rpc/ownership.h"
#include "rpc/peers.h"
#include "rpc/snapshots.h"
#include "rpc/tracer.h"
#include "rpc/worker.h"

namespace baton::rpc::internal {

// A call that this worker made. Its result is set once, by whatever comes
// first: the answer, the deadline, a cancellation or the loss of the peer.
class OutgoingCall {
 public:
  OutgoingCall(CallSpec s, OnReply r)
      : spec(std::move(s)), on_reply(std::move(r)) {}

  CallSpec spec;
  OnReply on_reply;
  WorkerInfo to;               // as it was known when the call began
  PeerPtr peer;                // null if it could not begin
  std::vector<HoldId> within;  // holds of the handler that made it
  // Registrations of what may end the call early, and what was sent with it.
  // Written under AgentCore::mutex_ until it is done, then constant.
  struct Watches {
    uint64_t cancel = 0;
    uint64_t parent = 0;
  } watches;
  std::vector<ForkId> forks;
  std::chrono::steady_clock::time_point started;
  std::chrono::steady_clock::time_point deadline;  // constant once admitted
  uint64_t order = 0;  // among the agent's calls; constant once admitted
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};  // done, but not by an answer
  bool late = false;  // its deadline has passed; used under AgentCore::mutex_
  // For statistics and traces.
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<int64_t> sent_ns{0};

  std::atomic<uint64_t> number{0};  // not 0 once sent
};

// A call that this worker serves. As an ObjectUse it stands for the call's use
// of the object whose method it calls.
struct IncomingCall : ObjectUse {
  IncomingCall(PeerPtr p, const WorkerInfo& w) : peer(std::move(p)) {
    context->caller = w;
  }

  const PeerPtr peer;
  const std::shared_ptr<CallContext::State> context =
      std::make_shared<CallContext::State>();
  const WorkerInfo& from = context->caller;
  bool local = false;    // made by this worker
  bool creates = false;  // it has made the pending object of frame.result
  RequestFrame frame;
  std::vector<Tensor> tensors;
  std::vector<HandlePtr> handles;
  PeerAccount::Ticket ticket;
  std::string name;
  Handler handler = nullptr;         // null for a system method
  std::shared_ptr<ObjectLock> held;  // held until its handler has returned
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();  // constant once prepared
  uint64_t order = 0;  // among the agent's calls; constant once prepared
  uint64_t bytes_received = 0;
  std::atomic<int64_t> running_ns{0};  // when its handler began
  bool late = false;                   // as in OutgoingCall
  // It has its object, or was cancelled before it had: whoever sets it answers.
  std::atomic<bool> running{false};
  std::atomic<bool> refused{false};  // its handler has not run and will not
  std::atomic<bool> replied{false};
};
using IncomingPtr = std::shared_ptr<IncomingCall>;

// The key by which calls of either kind are in the order of their deadlines,
// and those with the same one in the order in which they began.
using Due = std::pair<std::chrono::steady_clock::time_point, uint64_t>;
template <typename Call>
Due DueOf(const Call& call) {
  return {call->deadline, call->order};
}

// The untyped part of an agent: it tracks the calls under way and connects
// transport, peers, ownership and threads. docs/thread_model.md says what runs
// where:
//   inbox       one at a time: every message that comes, in order; no user code
//   completions answers, user continuations, cancellation
//   workers     handlers
//   timer       deadlines; only hands over to the others
// No lock is held while a task is posted to any of these. Thread-safe.
class AgentCore final : public MessageHandler,
                        public Ownership::Port,
                        public std::enable_shared_from_this<AgentCore> {
 public:
  using Clock = std::chrono::steady_clock;

  AgentCore(AgentOptions options, Registry registry,
            std::unique_ptr<Transport> transport);
  ~AgentCore() override;

  absl::Status Start(Agent* agent);
  absl::Status Shutdown(const ShutdownOptions& options);
  // Joins the threads. Call it after Shutdown.
  void StopThreads();
  bool shutting_down() const;
  // Waits until no call is under way and no object is owned or held. Returns
  // false after `deadline`.
  bool WaitIdle(Clock::time_point deadline);

  const WorkerInfo& self() const { return options_.self; }
  absl::StatusOr<WorkerInfo> Find(const Target& worker);  // Peers::Find
  std::vector<WorkerInfo> Workers();                      // Peers::All
  Ownership& ownership() { return *ownership_; }
  StoppablePool& workers() { return *workers_; }
  const std::shared_ptr<StoppablePool>& completions() const {
    return completions_;
  }
  Timer& timer() { return timer_; }
  const std::shared_ptr<Tracer>& tracer() const { return tracer_; }
  DebugInfo GetDebugInfo() const;
  void AddView(const std::string& name, std::function<View()> view);

  void AddPeer(const WorkerInfo& peer);
  void RemovePeer(const std::string& name);
  void StrikeOff(const MemberEvent& event);
  void WatchMembers(Agent::MemberWatcher watcher);
  std::chrono::milliseconds default_timeout() const {
    return std::chrono::milliseconds(default_timeout_ms_.load());
  }
  void set_default_timeout(std::chrono::milliseconds timeout) {
    default_timeout_ms_ = timeout.count();
  }
  void SetCallScopeFactory(std::shared_ptr<CallScopeFactory> factory);
  void SetService(uint64_t id, std::shared_ptr<void> service);
  std::shared_ptr<void> Service(uint64_t id) const;

  // Calls that wait for objects (holding.cc).
  HoldId NewHold();
  // Calls `done` with OK on a handler thread once `use` may begin. Calls it
  // with an error if `cancel` fires first, or shortly before `deadline`; the
  // error then names who has the object.
  using OnTurn = std::function<void(const absl::Status&)>;
  void AwaitTurn(const std::shared_ptr<ObjectLock>& lock,
                 const std::shared_ptr<const ObjectUse>& use,
                 const CancelToken& cancel, Clock::time_point deadline,
                 OnTurn done);

  // Calls made (outgoing.cc).
  void Begin(const CallPtr& call);
  void Send(const CallPtr& call, absl::FunctionRef<void(Encoder&)> encode);
  void Fail(const CallPtr& call, const absl::Status& why, bool retryable);
  absl::StatusOr<Tensor> EmptyFor(const Target& worker, const Shape& shape,
                                  const TensorOptions& options);

  // MessageHandler.
  void OnMessage(const WorkerInfo& from, Message message) override;
  void OnPeerLost(const WorkerInfo& peer, absl::Status why) override;

  // Ownership::Port.
  bool SendControl(const WorkerInfo& to, ControlItem item,
                   std::function<void()> acked) override;
  absl::Status CheckWorker(const WorkerInfo& worker) override;
  void Discard(std::vector<std::shared_ptr<void>> garbage) override;
  void OnOwnershipChanged() override;

 private:
  struct Outbound {  // an encoded request
    RequestFrame frame;
    std::vector<Tensor> tensors;
    std::vector<HandlePtr> handles;
    std::optional<Snapshots> snapshots = {};  // if handles are not confirmed
  };
  struct Turn;

  // These run on the inbox. Those of workers are in membership.cc.
  void Dispatch(const WorkerInfo& from, Message message);
  void OnRequest(const WorkerInfo& from, Message message);
  void OnResponse(const WorkerInfo& from, Message message);
  void OnControlFrame(const WorkerInfo& from, Message message);
  void OnCancel(Peer& from, uint64_t number);
  void OnLost(const WorkerInfo& worker, const absl::Status& cause);
  // Ends all calls and grants of a worker that is given up.
  void OnGone(const PeerPtr& peer, const MemberEvent& event);
  void OnReplaced(const PeerPtr& old);
  void OnRemoved(const Peers::Removed& removed, MemberEvent::Kind kind,
                 const absl::Status& cause);
  void RunOnInbox(Task task);
  // To be called once for every message. Handles what it says of its sender; a
  // stale one, and one of an earlier epoch, must be dropped.
  Peers::Observed Hear(const WorkerInfo& from, const Peers::Said& said);
  // Logs what cannot be read; it still shows that its sender is there.
  void Drop(const WorkerInfo& from, const char* what, const absl::Status& why);
  void OnGivenUpBy(const PeerPtr& peer);
  void EndAllWith(const PeerPtr& peer, const absl::Status& why);
  // Gives the worker up, unless it has been heard since the loss.
  void GiveUp(const Peers::Loss& loss, MemberEvent::Kind kind,
              const absl::Status& cause);
  void FlushControl(const PeerPtr& peer);
  // Handles a control message that could not be sent. `news` is Peers::News at
  // the time when the message was sent.
  void OnUnreachable(const Peer& peer, uint64_t news, const absl::Status& why);
  void Tick();
  void ScheduleTick();
  // These run on any thread.
  void Tell(MemberEvent event);
  void TellAll();
  void GiveUpAfter(std::chrono::milliseconds delay, const Peers::Loss& loss,
                   const absl::Status& why);
  // Calls a method of the peers under the lock.
  template <typename Method, typename... Args>
  auto WithPeers(Method method, const Args&... args) {
    MutexLock lock(mutex_);
    return (peers_.*method)(args...);
  }

  // Deadlines of calls. One timer serves all calls: it is set to the earliest
  // deadline, and then finds the calls that are late.
  void AwaitDeadlineLocked(Clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLateCalls();

  // Outgoing.
  absl::Status Admit(const CallPtr& call);
  void Watch(const CallPtr& call);
  void Unwatch(const OutgoingCall& call, const OutgoingCall::Watches& watches);
  void FailLater(const CallPtr& call, const absl::Status& why, bool retryable);
  // Ends a call that was claimed; runs the caller's continuations.
  void ConcludeFailed(const CallPtr& call, const absl::Status& why,
                      bool retryable);
  absl::StatusOr<std::shared_ptr<Outbound>> Encode(
      const CallPtr& call, absl::FunctionRef<void(Encoder&)> encode);
  // Numbers the call, which from here on fails if its worker is lost. Returns
  // false if it has ended already, or does so because its worker was given up
  // since the epoch `since`.
  bool Register(const CallPtr& call, RequestFrame& frame,
                std::optional<uint64_t> since,
                const std::vector<ForkId>& forks);
  void Transmit(const CallPtr& call, Outbound& outbound);
  void TransmitLocal(const CallPtr& call, Outbound& outbound);
  // Returns true for the first caller, which alone may set the call's result.
  bool Claim(const CallPtr& call);
  bool ClaimLocked(OutgoingCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends what a claimed call had until then.
  void EndWaiting(const OutgoingCall& call);
  // Records the end of a call for statistics and traces.
  void RecordMade(const CallPtr& call, bool ok);
  void RecordServed(const IncomingPtr& call, bool ok, uint64_t bytes_sent);
  // `mid_ns`: when it was sent or its handler began; 0 if that did not happen.
  void Record(const Peer& peer, const EndedCall& ended, const std::string& name,
              uint64_t number, Clock::time_point started, int64_t mid_ns);
  // Return null if nothing waits for the answer to that call any more.
  CallPtr FindSentLocked(Peer& peer, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CallPtr FindSent(Peer& peer, uint64_t number);
  CallPtr ClaimSent(Peer& peer, uint64_t number);
  // Delivers the answer to a claimed call.
  void Complete(const CallPtr& call, ResponseFrame frame,
                std::vector<Tensor> tensors, std::vector<HandlePtr> handles);
  void Deliver(const CallPtr& call, ResponseFrame& frame,
               std::vector<Tensor> tensors, std::vector<HandlePtr> handles);
  void CancelRemote(const CallPtr& call);
  // Fails all calls to `peer` with `why`; later answers are ignored.
  void FailCallsTo(Peer& peer, const absl::Status& why);
  void FailAllCalls(const absl::Status& why);

  // Incoming.
  void Serve(const IncomingPtr& call);
  absl::Status Prepare(const IncomingPtr& call);
  absl::Status FindHandler(const IncomingPtr& call);
  void ResolveAndRun(const IncomingPtr& call);
  void Enter(const IncomingPtr& call, const OwnedValue& object);
  void Run(const IncomingPtr& call, const AnyValue& object);
  // Returns why the handler did not run; OK also if the call has been answered.
  absl::Status RunUnlessEnded(const IncomingPtr& call, const AnyValue& object);
  absl::Status RunHandler(const IncomingPtr& call, const AnyValue& object);
  void Answer(const IncomingPtr& call, absl::StatusOr<AnyValue> result);
  absl::Status EncodeResult(const IncomingCall& call, const AnyValue& result,
                            Encoder& encoder);
  void Respond(const IncomingPtr& call, absl::StatusOr<AnyValue> result);
  void SendResponse(const IncomingPtr& call, ResponseFrame frame,
                    std::vector<Tensor> tensors,
                    std::vector<HandlePtr> handles);
  void CancelCallsFrom(Peer& peer, const absl::Status& why);
  // Returns the epoch of the answer.
  uint64_t EndIncoming(const IncomingPtr& call);
  // Returns null if nothing more may be sent to `peer` now. Runs on the inbox.
  PeerAccount::Ticket TakeReply(const Peer& peer);
  // For errors: names the holders that keep `use` waiting.
  std::string HoldersOf(const ObjectLock& lock, const ObjectUse& use) const;
  // The calls under way of the handler with this hold: "Stage::Forward at
  // worker bob".
  std::vector<std::string> CallsWithin(HoldId hold) const;

  absl::Status StoppedStatus() const;
  bool Wait(Clock::time_point deadline, const std::function<bool()>& until);
  void Notify();
  std::string Leftovers() const;

  const AgentOptions options_;
  const Registry registry_;
  const std::unique_ptr<Transport> transport_;
  Agent* agent_ = nullptr;  // set before the first message
  std::atomic<int64_t> default_timeout_ms_;
  std::atomic<bool> stopped_{false};  // set under mutex_
  std::atomic<uint64_t> calls_served_{0};
  std::atomic<uint64_t> last_hold_{0};
  std::atomic<int> discarding_{0};
  const Clock::time_point begun_ = Clock::now();

  const std::shared_ptr<Tracer> tracer_ = MakeTracerWithGpus();
  std::shared_ptr<Ownership> ownership_;
  Timer timer_{"baton-timer"};
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<StoppablePool> completions_;
  const std::shared_ptr<StoppablePool> workers_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool shutdown_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::milliseconds lost_grace_ ABSL_GUARDED_BY(mutex_){0};
  Peers peers_ ABSL_GUARDED_BY(mutex_);
  // All calls under way; each peer has those with it by number.
  std::map<Due, CallPtr> outgoing_ ABSL_GUARDED_BY(mutex_);
  std::map<Due, IncomingPtr> incoming_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_order_ ABSL_GUARDED_BY(mutex_) = 0;
  // When EndLateCalls runs next, and the timer that runs it.
  Clock::time_point awaited_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  Timer::Id alarm_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Agent::MemberWatcher> watchers_ ABSL_GUARDED_BY(mutex_);
  // Not yet reported to watchers.
  std::deque<MemberEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool telling_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<CallScopeFactory> scope_factory_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<void>> services_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::function<View()>> views_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
