// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

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

namespace baton::rpc {

// A channel that one end of a connection offers the other, or why not.
struct ChannelOffer {
  uint32_t channel = 0;
  std::string offer = {};
  std::string missing = {};
};
using ChannelKinds = std::vector<std::shared_ptr<ChannelKind>>;  // best first
std::vector<ChannelOffer> OffersOf(const ChannelKinds& kinds);

// The channels of one connection between two workers, from its hello to its
// end: which there are, what they have to say to each other, and the leases
// that are to be given back. Says once, as a line of the log, how tensors
// travel to the peer and why not otherwise. Thread-safe; its methods call
// channels, and nothing else, unless they say so.
class TensorChannels : public std::enable_shared_from_this<TensorChannels> {
 public:
  struct Setup {
    std::string self;
    std::string peer;
    bool dialed = false;
    std::vector<ChannelOffer> ours, theirs;
    Timer* timer = nullptr;  // until Close
    // There is something to take: at once, on a thread that holds no lock, or
    // on the timer's.
    std::function<void()> wake;
  };
  static std::shared_ptr<TensorChannels> Make(const ChannelKinds& kinds,
                                              Setup setup);

  // Begins, on the end that dialed.
  void Start();

  struct Exported {
    uint32_t channel;
    Ticket ticket;
  };
  // By the best channel that takes the tensor now: one that was made for this
  // connection and is held by nobody else goes as it is and leaves an undefined
  // one, others are copied.
  std::optional<Exported> Export(Tensor& tensor);
  // An uninitialised tensor for such an Export. Undefined where there is no
  // room for it now, or no use: the small travel in the message itself.
  Tensor Make(const Shape& shape, const TensorOptions& options);
  // As Channel::Send, when the message leaves.
  Future<void> Send(const Exported& exported);
  void Withdraw(const Exported& exported);
  absl::StatusOr<Imported> Import(uint32_t channel, const TensorSpec& spec,
                                  const std::string& ticket);

  // A CHANNEL frame. InvalidArgument for one that makes no sense. May wake.
  absl::Status OnFrame(const std::string& meta);
  // The next CHANNEL frame for the other end: its meta; empty when there is
  // nothing to be said. Whoever takes it sends it, in that order.
  std::string TakeFrame();

  // Of all channels together.
  Channel::Signs Beat();

  // Why the connection must end, once a channel cannot keep what it promised;
  // empty until then. With it, it wakes.
  std::string broken() const;

  // The ring that the other end writes, and the one that may be written here,
  // once they are there; each is given once. With the latter it wakes.
  std::optional<RingEndIn> TakeRingIn();
  std::optional<RingEndOut> TakeRingOut();

  // The connection has ended: channels fall silent, what was imported stays.
  void Close();
  std::vector<TensorChannelInfo> info() const;

 private:
  class Port;
  struct Entry {
    std::string name;
    std::shared_ptr<Channel> channel = nullptr;  // null: why_not says it
    bool open = false;
    std::string why_not = {};
  };
  static constexpr size_t kReleasesAtOnce = 32;

  explicit TensorChannels(Setup setup) : setup_(std::move(setup)) {}
  void Open(const ChannelKinds& kinds);
  // Why a pair that could have it needs it not; empty if it does.
  std::string Spare(const ChannelKind& kind) const;
  std::shared_ptr<Channel> Find(uint32_t channel) const;
  struct Usable {
    uint32_t id;
    std::shared_ptr<Channel> channel;
  };
  std::vector<Usable> UsableOnes() const;  // best first
  std::vector<std::shared_ptr<Channel>> All() const;

  // What ports pass on.
  void SendControl(uint32_t channel, std::string payload);
  void Release(uint32_t channel, uint64_t lease);
  void Settle(uint32_t channel, const std::string& why_not);
  void Break(uint32_t channel, const std::string& why);
  // False where the connection has ended or is broken already.
  bool BreakLocked(uint32_t channel, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepRing(RingEndIn end);
  void KeepRing(RingEndOut end);
  // When all is settled, and only once: how tensors travel.
  std::string VerdictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Setup setup_;
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  bool flush_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::string broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> order_ ABSL_GUARDED_BY(mutex_);  // best first
  std::map<uint32_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  struct Said {
    uint32_t channel;
    std::string payload;
  };
  std::vector<Said> said_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, std::vector<uint64_t>> released_ ABSL_GUARDED_BY(mutex_);
  std::optional<RingEndIn> ring_in_ ABSL_GUARDED_BY(mutex_);
  std::optional<RingEndOut> ring_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
