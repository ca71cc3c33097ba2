// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/mutex.h"
#include "core/timer.h"
#include "rpc/transports/deliveries.h"
#include "rpc/transports/failure_detector.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/grpc_stream.h"
#include "rpc/transports/outgoing.h"
#include "rpc/transports/rings.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

namespace wire {
class Challenge;
class Hello;
class HelloAnswer;
enum Verdict : int;
}  // namespace wire

// State that the links of one transport share.
struct LinkHost {
  GrpcOptions options;
  WorkerInfo self;  // set before the first message and hello arrive
  StreamCount streams;
  std::shared_ptr<HandlerGate> gate = std::make_shared<HandlerGate>();
  std::shared_ptr<ThreadPool> executor;
  std::unique_ptr<Timer> timer;
  std::shared_ptr<RingPoller> poller;  // null if there are no rings
  ChannelKinds kinds;
  std::atomic<uint64_t> attempts{0};
  std::atomic<bool> stopping{false};
  Mutex idle_mutex;
  CondVar idle;
  uint64_t idle_events ABSL_GUARDED_BY(idle_mutex) = 0;  // links became idle
};
class Link;
// Waits until all of these links of the host are idle, for at most `timeout`.
void AwaitIdle(LinkHost& host, const std::vector<std::shared_ptr<Link>>& links,
               std::chrono::milliseconds timeout);

// The state that one worker keeps for one peer: the connection, the messages
// that wait for it, and the messages that arrived over it.
//
//   idle     --Send-->              dialing
//   dialing  --the peer's hello, or
//              its answer to ours--> up    (when both dial at once, the stream
//                                           of the lower name is kept)
//   dialing  --no answer in time-->  idle  (waiting messages fail)
//   up       --the stream breaks, or
//              the peer is silent--> idle  (OnPeerLost; all messages fail)
//
// Attempts to connect are numbered, so that a hello that a newer connection has
// overtaken cannot break that connection.
//
// Small messages and chunks of large ones are written to the stream in turns.
// While messages that wait for tensors of channels (PendingMessages) hold too
// many bytes, the peer is asked to pause its large messages; small ones, which
// may bring what is waited for, go on. Thread-safe.
class Link final : public GrpcStreamObserver,
                   public std::enable_shared_from_this<Link> {
 public:
  using Incarnations = std::deque<uint64_t>;  // the latest at the end

  // `past`: those of an earlier link to a peer of that name. They are refused
  // while another one is known.
  static std::shared_ptr<Link> Make(LinkHost& host, const WorkerInfo& peer,
                                    Incarnations past = {});

  // Updates what is known of the peer; a new incarnation breaks the link. May
  // ask the resolver for the host of its address.
  void SetPeer(const WorkerInfo& peer);
  void Send(std::shared_ptr<Outgoing> message);
  // Takes a stream on which the peer said hello. Returns false if it was
  // refused.
  bool Accept(const std::shared_ptr<GrpcStream>& stream,
              const wire::Hello& hello);
  // Breaks the link as a failing network would; `then` runs after OnPeerLost.
  void Sever(const absl::Status& why, Task then);
  // Breaks the link for good: later messages and hellos are refused.
  void Close(const absl::Status& why);
  // Closes the link and returns the incarnations that it has known, if
  // `incarnation` is the present one, or none is known, and the link is not up.
  std::optional<Incarnations> CloseUnlessUp(uint64_t incarnation,
                                            const absl::Status& why);
  // Sends what waits, then says goodbye; the peer closes the link then.
  void BeginGoodbye();
  bool idle() const;
  // The channels of the present connection; null if there is none.
  std::shared_ptr<TensorChannels> channels() const;
  ChannelInfo channel() const;

  bool OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) override;
  void OnWritten(GrpcStream& stream) override;
  void OnBroken(GrpcStream& stream, const absl::Status& why) override;

 private:
  enum class State { kIdle, kDialing, kUp };
  using Clock = std::chrono::steady_clock;

  using Queue = std::deque<std::shared_ptr<Outgoing>>;

  // The stream and the messages that wait for it.
  struct StreamState {
    std::shared_ptr<GrpcStream> grpc;
    bool ready = false;  // the hello and its answer have been exchanged
    bool writing = false;
    bool goodbye_sent = false;
    bool goodbye_received = false;
    // For a dialed stream, if there is a token: the hello, until the peer has
    // proved that it knows the token; then our proof, until it is written.
    std::string hello;
    std::string proof;
    Queue small, large;        // messages without and with chunks
    bool large_next = false;   // it is the turn of the large ones
    bool peer_pauses = false;  // it wants no more large messages for now
    // Whether this end wants none, and what it has told the peer of that.
    bool pauses = false;
    bool told_pauses = false;
    std::vector<std::shared_ptr<Outgoing>> in_flight;

    // The bytes of messages that gRPC has begun to send.
    size_t UnderWay() const;
    // Also forgets the stream's hello. The waiting messages stay.
    void CloseStream();
  };

  Link(LinkHost& host, const WorkerInfo& peer, Incarnations past)
      : host_(host), peer_(peer), past_(std::move(past)) {}

  void StartDialLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<GrpcStream> DialStreamLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Dials a stream and sends the hello as its first frame.
  void SayHelloLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AttemptFailedLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnreachableLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DialFailedLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `then` under the lock unless another attempt has begun by then.
  void AfterLocked(std::chrono::milliseconds delay, void (Link::*then)())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TimedOutLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Receiving (link_receive.cc). HandleLocked leaves channel frames to the
  // caller.
  static absl::Status HearChannels(
      const std::shared_ptr<TensorChannels>& channels,
      const Receiver::Batch& batch);
  absl::Status CheckBesideRingLocked(const Receiver::Batch& batch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleLocked(Receiver::Batch& batch, bool from_ring)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoodbyeReceivedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PeerHasShutDownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads messages of about `most` bytes.
  void ReadRing(RingReceiver& ring, size_t most);
  void ReadRestOfRing();
  void Deliver();
  // Called when there may be room again.
  void ResumeReading();
  // Asks the peer to pause or resume its large messages, if that has changed.
  void PauseLargeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Sending through the ring (link_ring.cc). Once there is a ring, it carries
  // small messages and the frames of channels. The functions that return bool
  // return true if all that was added has left; otherwise the link may have
  // broken.
  void TakeUpRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddToRingLocked(std::string_view frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FlushRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropRingsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HasLeftLocked(const std::shared_ptr<Outgoing>& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns Unauthenticated if the peer does not prove that it knows the token.
  absl::Status OnChallengeLocked(const wire::Challenge& challenge)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnAnswerLocked(const wire::HelloAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ConnectedLocked(const wire::HelloAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wire::Verdict JudgeLocked(const wire::Hello& hello)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called when the peer's present incarnation has ended.
  void ForgetIncarnationLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RememberIncarnationLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void BadFramesLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenChannelsLocked(bool dialed, const ChannelOffers& ours,
                          const ChannelOffers& theirs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called when the channels have frames to send.
  void PumpChannels();

  // Fails a message for which the peer would break the connection, and returns
  // true.
  bool RefuseIfTooLargeLocked(Outgoing& message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes from the queue what one write may hold.
  void TakeLocked(Queue& queue, size_t budget, std::vector<grpc::Slice>& out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<grpc::Slice> NextWriteLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteLocked(grpc::ByteBuffer frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpGoodbyeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called when the link has become up. The peer has this lease and accepts
  // messages of up to `max_bytes`.
  void BecomeUpLocked(std::chrono::milliseconds lease, uint64_t max_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitBeatLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeatLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LostLocked(const absl::Status& why) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If `tell` is set and the link was up, calls OnPeerLost, and after that
  // fails the messages of the link.
  void BreakLocked(const absl::Status& why, bool tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes all messages that wait or are being sent, and resets the stream.
  std::vector<std::shared_ptr<Outgoing>> TakeQueuesLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailQueuesLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BecomeIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BreakForTensor(const absl::Status& why);

  LinkHost& host_;
  std::shared_ptr<Deliveries> deliveries_;
  std::shared_ptr<PendingMessages> held_;

  mutable Mutex mutex_;
  WorkerInfo peer_ ABSL_GUARDED_BY(mutex_);
  Incarnations past_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  StreamState stream_ ABSL_GUARDED_BY(mutex_);
  bool saying_goodbye_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // why; OK while open

  // Dialing. The address last given to SetPeer, and whether it may be dialed.
  std::string checked_ ABSL_GUARDED_BY(mutex_);
  absl::Status dialable_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ ABSL_GUARDED_BY(mutex_);
  size_t target_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point dial_deadline_ ABSL_GUARDED_BY(mutex_);
  std::chrono::milliseconds retry_delay_ ABSL_GUARDED_BY(mutex_){0};
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);
  bool resting_ ABSL_GUARDED_BY(mutex_) = false;  // between two rounds
  bool was_up_ ABSL_GUARDED_BY(mutex_) = false;

  // Of attempt_, until it is answered.
  std::shared_ptr<wire::Hello> hello_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<TensorChannels> channels_
      ABSL_GUARDED_BY(mutex_);  // while the link is up

  // The rings that the peer writes and that this end writes, while there are
  // such, and the message that has not completely left through the latter.
  std::shared_ptr<RingReceiver> ring_in_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RingSender> ring_out_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Outgoing> in_ring_ ABSL_GUARDED_BY(mutex_);

  // Messages that are written, but some of whose tensors channels still send.
  std::vector<std::weak_ptr<Outgoing>> leaving_ ABSL_GUARDED_BY(mutex_);

  ChannelInfo traffic_ ABSL_GUARDED_BY(mutex_);  // counts and detail
  FailureDetector failure_detector_ ABSL_GUARDED_BY(mutex_);
  uint64_t peer_max_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // 0 if unknown
  uint64_t times_up_ ABSL_GUARDED_BY(mutex_) = 0;

  // Numbers of attempts: our last one, and the peer's last one that was
  // accepted or overtaken.
  uint64_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stale_attempt_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::rpc
