// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/channels/unauthenticated_peers.h"

namespace baton::rpc {

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
