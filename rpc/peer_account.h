// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/debug_info.h"
#include "rpc/methods.h"

namespace baton::rpc::internal {

// What another worker has waiting at this one, in calls and in answers not yet
// sent, which is limited so that no worker uses up all memory or all call
// slots; and the statistics of the calls with it, which CallStats keeps. All
// incarnations of a worker share one account. Tickets are taken on the agent's
// inbox, and used and destroyed on any thread; the statistics are guarded by
// the agent's lock.
class PeerAccount : public std::enable_shared_from_this<PeerAccount> {
 public:
  struct Limits {
    size_t calls = std::numeric_limits<size_t>::max();
    size_t bytes = std::numeric_limits<size_t>::max();
    size_t replies = std::numeric_limits<size_t>::max();
  };
  PeerAccount(std::string peer, const Limits& limits)
      : peer_(std::move(peer)), limits_(limits) {}

  // The share of one call or reply, which it has until this is destroyed.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Returns ResourceExhausted if too many bytes of answers to this worker
    // have not been sent yet.
    absl::Status MayRun() const;
    // Records that the arguments are freed and an answer of `bytes` waits to be
    // sent.
    void Answer(size_t bytes);

   private:
    friend class PeerAccount;
    Place(std::shared_ptr<PeerAccount> of, bool call, size_t bytes)
        : of_(std::move(of)), call_(call), bytes_(bytes) {}

    const std::shared_ptr<PeerAccount> of_;
    const bool call_;
    size_t bytes_;       // of the call's arguments
    size_t answer_ = 0;  // bytes
  };
  using Ticket = std::unique_ptr<Place>;

  // Admits a call of `bytes`. Returns ResourceExhausted, which names the limit,
  // if too many calls of the peer or too many bytes of them wait. A single call
  // may have any size.
  absl::StatusOr<Ticket> TakeCall(size_t bytes);
  // Admits a message to the peer that has no call's ticket: a refusal or an
  // acknowledgement. Returns null if the most such messages already wait to be
  // sent; `first` is then set to whether this is the first one refused since
  // none waited.
  Ticket TakeReply(bool& first);

 private:
  friend class CallStats;

  const std::string peer_;
  const Limits limits_;
  // These grow through Take and shrink on any thread.
  std::atomic<size_t> calls_{0};
  std::atomic<size_t> bytes_{0};    // of arguments
  std::atomic<size_t> answers_{0};  // bytes
  std::atomic<size_t> replies_{0};
  // `replies_` reached the limit and has not been 0 since.
  bool too_many_ = false;

  // By whether the calls came in, and method.
  std::map<std::pair<bool, MethodKey>, MethodStats> methods_;
  bool forgotten_ = false;  // the calls that end now count for "others"
};

// A call that this worker made or served.
struct EndedCall {
  bool incoming = false;
  MethodKey method;
  const std::string& method_name;
  bool ok = true;
  uint64_t micros = 0;
  uint64_t bytes_sent = 0;  // by this worker
  uint64_t bytes_received = 0;
};

// The statistics of all accounts, by method. Accounts and methods beyond some
// thousands share one entry, as do forgotten accounts. Thread-compatible.
class CallStats {
 public:
  void Add(PeerAccount& account, const EndedCall& ended);
  // Moves the counts of the account to "others", until Resume.
  void Forget(PeerAccount& account);
  void Resume(PeerAccount& account) { account.forgotten_ = false; }
  void Append(const PeerAccount& account, std::vector<MethodStats>& to) const;
  void AppendOthers(std::vector<MethodStats>& to) const { Append(others_, to); }

 private:
  MethodStats& Of(PeerAccount& account, bool incoming, const MethodKey& method,
                  const std::string& method_name);

  PeerAccount others_{"others", {}};
  size_t entries_ = 0;  // of all accounts
};

}  // namespace baton::rpc::internal
