// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/timer.h"
#include "rpc/channels/channel.h"

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace baton::rpc {

namespace wire {
class ChannelOffer;
}
// What one end of a connection offers to the other (rpc/wire.proto).
using ChannelOffers = google::protobuf::RepeatedPtrField<wire::ChannelOffer>;
using ChannelKinds = std::vector<std::shared_ptr<ChannelKind>>;  // best first

// The channels of one connection between two workers, from its hello to its
// end: which there are, their control messages, and the leases to be released.
// Logs once, in one line, how tensors travel to the peer and why other ways are
// not used. Calls only channels, unless a method says otherwise. Thread-safe.
class TensorChannels : public std::enable_shared_from_this<TensorChannels> {
 public:
  struct Setup {
    std::string self;
    std::string peer;
    bool dialed = false;
    Timer* timer = nullptr;  // must be valid until Close
    // Called when there is something to take: at once, on a thread that holds
    // no lock, or on the timer's thread.
    std::function<void()> wake;
  };
  static std::shared_ptr<TensorChannels> Make(const ChannelKinds& kinds,
                                              const ChannelOffers& ours,
                                              const ChannelOffers& theirs,
                                              Setup setup);

  // Called on the end that dialed.
  void Start();

  struct Exported {
    uint32_t channel;
    Ticket ticket;
  };
  // Uses the best channel that takes the tensor now. A tensor that Make
  // returned and that has no other handle is sent as it is, and becomes
  // undefined; others are copied.
  std::optional<Exported> Export(Tensor& tensor);
  // Returns an uninitialized tensor for such an Export. Undefined if there is
  // no room for it now, or if it is so small that it travels in the message
  // itself.
  Tensor Make(const Shape& shape, const TensorOptions& options);
  // Called when the message leaves; see Channel::Send.
  Future<void> Send(const Exported& exported);
  void Withdraw(const Exported& exported);
  absl::StatusOr<Imported> Import(uint32_t channel, const TensorSpec& spec,
                                  const std::string& ticket);

  // Handles a CHANNEL frame. Returns InvalidArgument if it makes no sense. May
  // call `wake`.
  absl::Status OnFrame(const std::string& meta);
  // Returns the meta bytes of the next CHANNEL frame for the other end; empty
  // if there is none. The caller must send the frames in this order.
  std::string TakeFrame();

  // The signs of all channels together.
  Channel::Signs Beat();

  // Why the connection must end, because a channel cannot keep a promise; empty
  // otherwise. A channel that fails so calls `wake`.
  std::string broken() const;

  // The rings for reading and for writing, once they exist; each is returned
  // once. `wake` is called when the one for writing exists.
  std::optional<RingEndIn> TakeRingIn();
  std::optional<RingEndOut> TakeRingOut();

  // Called when the connection has ended: channels send no more; imported
  // tensors stay valid.
  void Close();
  std::vector<TensorChannelInfo> info() const;

 private:
  class Port;
  struct Entry {
    std::string name;
    std::shared_ptr<Channel> channel = nullptr;  // null: see why_not
    bool open = false;
    std::string why_not = {};
  };
  static constexpr size_t kReleasesAtOnce = 32;
  using Clock = Timer::Clock;

  explicit TensorChannels(Setup setup) : setup_(std::move(setup)) {}
  void Open(const ChannelKinds& kinds, const ChannelOffers& ours,
            const ChannelOffers& theirs);
  // Why a pair that could have the channel does not need it; empty if it does.
  std::string Spare(const ChannelKind& kind) const;
  std::shared_ptr<Channel> Find(uint32_t channel) const;
  struct Usable {
    uint32_t id;
    std::shared_ptr<Channel> channel;
  };
  std::vector<Usable> UsableOnes() const;  // best first
  std::vector<std::shared_ptr<Channel>> All() const;

  // Messages from the channels' ports.
  void SendControl(uint32_t channel, std::string payload);
  void Release(uint32_t channel, uint64_t lease,
               std::chrono::milliseconds within);
  void FlushAtLocked(Clock::time_point when)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called by the timer for each alarm; an earlier one replaces the later one.
  void Flush(Clock::time_point alarm);
  void Settle(uint32_t channel, const std::string& why_not);
  void Break(uint32_t channel, const std::string& why);
  // Returns false if the connection has ended or is broken already.
  bool BreakLocked(uint32_t channel, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepRing(RingEndIn end);
  void KeepRing(RingEndOut end);
  // Logs, once, how tensors travel, when all channels are open or refused.
  void LogVerdict();

  const Setup setup_;
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  // When released_ is to be sent, and when the timer will look.
  Clock::time_point due_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  Clock::time_point alarm_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  std::string broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> order_ ABSL_GUARDED_BY(mutex_);  // best first
  std::map<uint32_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  struct Said {
    uint32_t channel;
    std::string payload;
  };
  std::vector<Said> said_ ABSL_GUARDED_BY(mutex_);
  // There is something in said_ or released_; written under mutex_.
  std::atomic<bool> has_frame_{false};
  std::map<uint32_t, std::vector<uint64_t>> released_ ABSL_GUARDED_BY(mutex_);
  std::optional<RingEndIn> ring_in_ ABSL_GUARDED_BY(mutex_);
  std::optional<RingEndOut> ring_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
