// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <netdb.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/channels/accepting.h"
#include "rpc/channels/segment.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {

// Dials the addresses of a host, one after the other, on a poller's thread. It
// has no thread of its own, so an address that drops packets delays nobody
// else. Thread-safe.
class TcpDial : public std::enable_shared_from_this<TcpDial> {
 public:
  // `then` gets the connection whose other end has shown its key, or an error:
  // Unavailable if nobody answers within `limit`, PermissionDenied if it is
  // somebody else. It is called at most once, on the thread of the poller,
  // which must have been started.
  using Then = absl::AnyInvocable<void(absl::StatusOr<Fd>)>;
  static std::shared_ptr<TcpDial> Start(
      const std::shared_ptr<SocketPoller>& poller, TcpAddresses addresses,
      const TcpKeys& keys, std::chrono::milliseconds limit, Then then);
  // `then` is not called after this, except by a call that is under way.
  void Cancel();

 private:
  TcpDial(const std::shared_ptr<SocketPoller>& poller, TcpAddresses addresses,
          const TcpKeys& keys, Then then);
  // Runs on the poller's thread: dials the next address, if there is one.
  void DialNext();
  SocketPoller::Then Step(const Fd& socket);
  // Returns OK once the socket is connected, Cancelled while that is under way.
  absl::Status Connect(const Fd& socket);
  absl::Status ShowKey(const Fd& socket);
  // Returns Cancelled while the key has not arrived.
  absl::Status HearKey(const Fd& socket);
  void Finish(absl::StatusOr<Fd> result);

  const std::weak_ptr<SocketPoller> poller_;
  const TcpAddresses addresses_;
  const TcpKeys keys_;
  // Used on the poller's thread only.
  const addrinfo* next_;
  const addrinfo* dialed_ = nullptr;
  bool connecting_ = false;
  bool shown_ = false;
  std::string heard_;
  absl::Status failure_{absl::UnavailableError("it has no address")};

  Mutex mutex_;
  Then then_ ABSL_GUARDED_BY(mutex_);            // null once called or dropped
  uint64_t polled_ ABSL_GUARDED_BY(mutex_) = 0;  // its id there
};

// Listens on an address, and finds out which channel end each connection is
// for. At most 64 connections may be unauthenticated, that is, have shown no
// key yet, each for at most 10 s. Thread-safe.
class TcpListener : public std::enable_shared_from_this<TcpListener> {
 public:
  // Port 0 stands for any free one.
  static absl::StatusOr<std::shared_ptr<TcpListener>> Make(
      const std::string& host, uint16_t port,
      const std::shared_ptr<SocketPoller>& poller);

  uint16_t port() const { return port_; }
  // `then` gets the connection that shows keys.ours after it was shown
  // keys.theirs. It is called at most once, on the thread of the poller, which
  // must have been started.
  using Then = std::function<void(Fd)>;
  absl::Status Expect(const TcpKeys& keys, Then then);
  // `key` is the keys.ours of a connection that is no longer expected.
  void Forget(const std::string& key);

 private:
  struct Expected {
    TcpKeys keys;
    Then then;
  };
  TcpListener(std::vector<std::shared_ptr<const Fd>> sockets, uint16_t port,
              const std::shared_ptr<SocketPoller>& poller);
  // Runs on the poller's thread.
  void TakeIn(Fd socket);
  SocketPoller::Then Hear(uint64_t number, const Fd& socket,
                          std::string& shown);
  void Welcome(const Fd& socket, const std::string& shown);

  const std::vector<std::shared_ptr<const Fd>> sockets_;
  const uint16_t port_;
  const std::weak_ptr<SocketPoller> poller_;
  const std::shared_ptr<UnauthenticatedPeers> unauthenticated_;
  mutable Mutex mutex_;
  bool accepting_ ABSL_GUARDED_BY(mutex_) = false;  // since the first Expect
  std::list<Expected> expected_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc
