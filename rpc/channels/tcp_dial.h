// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <netdb.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {

// Dials the addresses of a host, one after the other, on a poller's thread and
// none of its own: one that drops packets holds up nobody else. Thread-safe.
class TcpDial : public std::enable_shared_from_this<TcpDial> {
 public:
  // `then` gets the connection whose other end has shown its key, or why there
  // is none: Unavailable where nobody is there within `limit`, PermissionDenied
  // where it is somebody else. At most once, on the poller's thread. The poller
  // has started.
  using Then = absl::AnyInvocable<void(absl::StatusOr<Fd>)>;
  static std::shared_ptr<TcpDial> Start(
      const std::shared_ptr<SocketPoller>& poller, TcpAddresses addresses,
      const TcpKeys& keys, std::chrono::milliseconds limit, Then then);
  // Nobody wants it any more: `then` is not called, unless it is now.
  void Cancel();

 private:
  TcpDial(const std::shared_ptr<SocketPoller>& poller, TcpAddresses addresses,
          const TcpKeys& keys, Then then);
  // Of the poller's thread: the next address there is.
  void DialNext();
  SocketPoller::Then Step(const Fd& socket);
  // OK once the socket is connected; Cancelled while that is under way.
  absl::Status Connect(const Fd& socket);
  absl::Status ShowKey(const Fd& socket);
  // Cancelled while the key has not come.
  absl::Status HearKey(const Fd& socket);
  void Finish(absl::StatusOr<Fd> result);

  const std::weak_ptr<SocketPoller> poller_;
  const TcpAddresses addresses_;
  const TcpKeys keys_;
  // The poller's.
  const addrinfo* next_;
  const addrinfo* dialed_ = nullptr;
  bool connecting_ = false;
  bool shown_ = false;
  std::string heard_;
  absl::Status failure_{absl::UnavailableError("it has no address")};

  Mutex mutex_;
  Then then_ ABSL_GUARDED_BY(mutex_);  // null once it was called, or dropped
  uint64_t polled_ ABSL_GUARDED_BY(mutex_) = 0;  // as
};

}  // namespace baton::rpc
