// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/executor.h"
#include "core/mutex.h"
#include "core/timer.h"
#include "rpc/transports/deliveries.h"
#include "rpc/transports/failure_detector.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/grpc_stream.h"
#include "rpc/transports/handler_gate.h"
#include "rpc/transports/hello.h"
#include "rpc/transports/outgoing.h"
#include "rpc/transports/pending_messages.h"
#include "rpc/transports/ring_frames.h"
#include "rpc/transports/ring_poller.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

// What the links of one transport share.
struct LinkHost {
  GrpcOptions options;
  WorkerInfo self;  // set before the first message and hello
  StreamCount streams;
  std::shared_ptr<HandlerGate> gate = std::make_shared<HandlerGate>();
  std::shared_ptr<ThreadPool> executor;
  std::unique_ptr<Timer> timer;
  std::shared_ptr<RingPoller> poller;  // null: no rings
  ChannelKinds kinds;
  std::atomic<uint64_t> attempts{0};
  std::atomic<bool> stopping{false};
  Mutex idle_mutex;
  CondVar idle;
  uint64_t idle_events ABSL_GUARDED_BY(idle_mutex) = 0;  // links became idle
};

// All that one worker has to do with another: the connection, the messages that
// wait for it, and what came over it.
//
//   idle     --Send-->             dialing
//   dialing  --their hello or-->   up       (when both dial at once, the stream
//              our answer                    of the lower name is kept)
//   dialing  --no answer in time-> idle     (waiting messages fail)
//   up       --a stream breaks,
//              the peer is silent-> idle    (OnPeerLost; all messages fail)
//
// Attempts are numbered, so that a hello that was overtaken by a newer
// connection cannot break it. Thread-safe.
class Link final : public GrpcStreamObserver,
                   public std::enable_shared_from_this<Link> {
 public:
  static std::shared_ptr<Link> Make(LinkHost& host, const WorkerInfo& peer);

  // What is known of the peer has changed; a new incarnation breaks the link.
  // May ask the resolver for the host of its address.
  void SetPeer(const WorkerInfo& peer);
  void Send(std::shared_ptr<Outgoing> message);
  // A stream on which the peer said hello. False: it was refused.
  bool Accept(const std::shared_ptr<GrpcStream>& stream, const Hello& hello);
  // Breaks it as a failing network would; `then` runs after OnPeerLost.
  void Sever(const absl::Status& why, Task then);
  // For good: breaks it, and whatever is sent or says hello later is refused.
  void Close(const absl::Status& why);
  // The same, and true, if this incarnation is the present one, or none is
  // known, and is not connected.
  bool CloseUnlessUp(uint64_t incarnation, const absl::Status& why);
  // Sends what waits, then says goodbye; the peer closes the link then.
  void BeginGoodbye();
  bool idle() const;
  // Those of the present connection; null when there is none.
  std::shared_ptr<TensorChannels> channels() const;
  ChannelInfo channel() const;

  bool OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) override;
  void OnWritten(GrpcStream& stream) override;
  void OnBroken(GrpcStream& stream, const absl::Status& why) override;

 private:
  enum class State { kIdle, kDialing, kUp };
  using Clock = std::chrono::steady_clock;

  // One of the two streams and what waits for it.
  struct StreamState {
    std::shared_ptr<GrpcStream> stream;
    bool ready = false;  // hello and answer are through
    bool writing = false;
    bool goodbye_sent = false;
    bool goodbye_received = false;
    // Where there is a token, of a stream that was dialed: the hello, until the
    // peer has proved to know the token; then the proof, until it is written.
    std::string hello;
    std::string proof;
    std::deque<std::shared_ptr<Outgoing>> queue;
    std::vector<std::shared_ptr<Outgoing>> in_flight;

    // Of the messages that gRPC has some bytes of.
    size_t UnderWay() const;
    // And forgets its hello; what waits stays.
    void CloseStream();
  };

  Link(LinkHost& host, const WorkerInfo& peer) : host_(host), peer_(peer) {}

  StreamState* Find(const GrpcStream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void StartDialLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<GrpcStream> DialStreamLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Dials a stream and begins with that.
  void SayHelloLocked(StreamState& state, Hello hello)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DialBulkLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  absl::Status HandleStreamLocked(StreamState& state, Receiver::Batch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleLocked(StreamState& state, Receiver::Batch& batch,
                            bool may_open_ring)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // About `most` bytes of messages.
  void ReadRing(RingReceiver& ring, size_t most);
  void ReadRestOfRing();
  void Deliver();
  // For more of this stream. What held messages wait for comes by the control
  // stream.
  bool HasRoom(bool control) const;

  // Sending by the ring (link_ring.cc). From when there is one, what the
  // control stream would carry goes there, but for beats. Those that give a
  // bool say whether all that was added has left; the link may have broken if
  // not.
  void TakeUpRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddToRingLocked(std::string_view frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FlushRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpRingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropRingsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HasLeftLocked(const std::shared_ptr<Outgoing>& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Unauthenticated for a peer that does not prove to know the token.
  absl::Status OnChallengeLocked(StreamState& state, const Challenge& challenge)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnAnswerLocked(StreamState& state, const HelloAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ConnectedLocked(const HelloAnswer& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Verdict JudgeControlLocked(const Hello& hello)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsBulkLocked(const Hello& hello)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer's present incarnation is over.
  void ForgetIncarnationLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoodbyeReceivedLocked(StreamState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PeerHasShutDownLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void BadFramesLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenChannelsLocked(bool dialed, const std::vector<ChannelOffer>& ours,
                          const std::vector<ChannelOffer>& theirs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called when the channels have frames to send.
  void PumpChannels();

  bool RefuseTooLargeLocked(StreamState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpLocked(StreamState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpGoodbyeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The link has become up. The peer has this lease and accepts messages of up
  // to `max_bytes`.
  void BecomeUpLocked(std::chrono::milliseconds lease, uint64_t max_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitBeatLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeatLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LostLocked(const absl::Status& why) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `tell`: OnPeerLost follows, if it was up, and then what it took along
  // fails.
  void BreakLocked(const absl::Status& why, bool tell)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What waits or is on its way; nothing is left of the streams.
  std::vector<std::shared_ptr<Outgoing>> TakeQueuesLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailQueuesLocked(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BecomeIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResumeReading();
  void BreakForTensor(const absl::Status& why);

  LinkHost& host_;
  std::shared_ptr<Deliveries> deliveries_;
  std::shared_ptr<PendingMessages> held_;

  mutable Mutex mutex_;
  WorkerInfo peer_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> past_ ABSL_GUARDED_BY(mutex_);  // its incarnations
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  StreamState control_ ABSL_GUARDED_BY(mutex_);
  StreamState bulk_ ABSL_GUARDED_BY(mutex_);
  bool saying_goodbye_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // why; OK while it is open

  // Dialing. An address that SetPeer was given, and whether it may be dialed.
  std::string checked_ ABSL_GUARDED_BY(mutex_);
  absl::Status dialable_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ ABSL_GUARDED_BY(mutex_);
  size_t target_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point dial_deadline_ ABSL_GUARDED_BY(mutex_);
  std::chrono::milliseconds retry_delay_ ABSL_GUARDED_BY(mutex_){0};
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);
  bool resting_ ABSL_GUARDED_BY(mutex_) = false;  // between two rounds
  bool was_up_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<ChannelOffer> offers_ ABSL_GUARDED_BY(mutex_);  // of the attempt
  std::shared_ptr<TensorChannels> channels_
      ABSL_GUARDED_BY(mutex_);  // while it is up

  // While the peer writes one; while this end does, and the message that has
  // not left yet.
  std::shared_ptr<RingReceiver> ring_in_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RingSender> ring_out_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Outgoing> in_ring_ ABSL_GUARDED_BY(mutex_);

  // Written, while channels send some of their tensors.
  std::vector<std::weak_ptr<Outgoing>> leaving_ ABSL_GUARDED_BY(mutex_);

  ChannelInfo traffic_ ABSL_GUARDED_BY(mutex_);  // counts and detail
  FailureDetector failure_detector_ ABSL_GUARDED_BY(mutex_);
  uint64_t peer_max_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: no limit known
  uint64_t times_up_ ABSL_GUARDED_BY(mutex_) = 0;

  // Attempts: our last one; the one of the peer in use; the peer's that are
  // overtaken.
  uint64_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t accepted_attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stale_attempt_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::rpc
