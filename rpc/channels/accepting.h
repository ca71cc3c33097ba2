// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/socket_poller.h"

// Accepting connections: the reserve of file descriptors that they may not use,
// and the limits on those that are not authenticated yet.
namespace baton::rpc {

// Raises the soft limit of descriptors to the hard one, once per process: a
// worker needs up to three for each peer. Programs that call select() must have
// opened their descriptors before.
void RaiseDescriptorLimit();

// Returns ResourceExhausted, naming the limit, unless more descriptors are free
// than the reserve for established work: `reserves` times an eighth of the
// limit, each at most 128. `lowest` is the lowest descriptor number that was
// just free; the kernel assigns numbers in order.
absl::Status CheckDescriptors(int lowest, size_t reserves);
// The same; finds the lowest free number itself.
absl::Status CheckDescriptors(size_t reserves);

// Accepts the connections of a listening socket, on the poller's thread, until
// the poller ends or `then` returns false. If few descriptors are left
// (CheckDescriptors), a new connection is closed at once, with a warning now
// and then.
absl::Status AcceptOn(const std::shared_ptr<SocketPoller>& poller,
                      std::shared_ptr<const Fd> listening,
                      std::function<bool(Fd)> then);

// Connections whose other end has not authenticated itself yet: at most `most`
// of them, each for at most `time`. A further one replaces the oldest.
// Connections that are removed here are shut down. Thread-safe.
class UnauthenticatedPeers
    : public std::enable_shared_from_this<UnauthenticatedPeers> {
 public:
  UnauthenticatedPeers(const std::shared_ptr<SocketPoller>& poller, size_t most,
                       std::chrono::milliseconds time)
      : poller_(poller), most_(most), time_(time) {}

  // Returns the connection's number. `name`, its origin, can find it as well.
  uint64_t Add(std::shared_ptr<const Fd> socket, std::string name = {});
  // The connection has authenticated itself. Returns false if it was shut down
  // before.
  bool Remove(uint64_t number);
  void Remove(const std::string& name);
  // Whether the connection of that name may open a stream: an unauthenticated
  // one may open one, all others any number.
  bool MayBegin(const std::string& name);
  void ShutDownAll();

 private:
  using Clock = std::chrono::steady_clock;
  struct UnauthenticatedPeer {
    std::shared_ptr<const Fd> socket;
    std::string name;
    Clock::time_point until;
    bool began = false;
  };
  using All = std::map<uint64_t, UnauthenticatedPeer>;  // the oldest first

  void ShutDownExpired();
  void LookLaterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  All::iterator FindLocked(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutDownLocked(All::iterator peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::weak_ptr<SocketPoller> poller_;
  const size_t most_;
  const std::chrono::milliseconds time_;
  Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  All all_ ABSL_GUARDED_BY(mutex_);
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;  // for the old
};

}  // namespace baton::rpc
