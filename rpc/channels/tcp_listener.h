// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "rpc/channels/socket_poller.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {

// Listens on an address, and finds out whom each connection is for. Strangers,
// who have shown no key yet, are 64 at most, of whom the oldest goes when there
// is one more, and for 10 s at most. Thread-safe.
class TcpListener : public std::enable_shared_from_this<TcpListener> {
 public:
  // Port 0: any free one.
  static absl::StatusOr<std::shared_ptr<TcpListener>> Make(
      const std::string& host, uint16_t port,
      const std::shared_ptr<SocketPoller>& poller);

  uint16_t port() const { return port_; }
  // `then` gets the connection that shows keys.ours, and has been shown the
  // other one; at most once, on the poller's thread. The poller has started.
  using Then = std::function<void(Fd)>;
  absl::Status Expect(const TcpKeys& keys, Then then);
  // The keys.ours of one who is expected no more.
  void Forget(const std::string& key);
  size_t strangers() const;

 private:
  struct Expected {
    TcpKeys keys;
    Then then;
  };
  struct Stranger {
    std::shared_ptr<Fd> socket;
    std::string shown = {};
    bool old = false;
  };
  TcpListener(Fd socket, uint16_t port,
              const std::shared_ptr<SocketPoller>& poller)
      : socket_(std::make_shared<Fd>(std::move(socket))),
        port_(port),
        poller_(poller) {}
  // On the poller's thread.
  SocketPoller::Then Accept();
  void TakeIn(Fd socket);
  SocketPoller::Then Hear(uint64_t number);
  void Welcome(Stranger stranger);
  void SendOldAway();
  // Whoever waits for it hears the end of the connection.
  void SendAwayLocked(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Fd> socket_;
  const uint16_t port_;
  const std::weak_ptr<SocketPoller> poller_;
  mutable Mutex mutex_;
  uint64_t polled_ ABSL_GUARDED_BY(mutex_) = 0;  // as; 0: nobody was expected
  std::list<Expected> expected_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_stranger_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Stranger> strangers_ ABSL_GUARDED_BY(mutex_);
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;  // for old strangers
};

}  // namespace baton::rpc
