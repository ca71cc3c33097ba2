// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/security.h"

namespace baton::rpc {
namespace {

using Poll = SocketPoller::Then;

constexpr size_t kMaxStrangers = 64;
// Who was there at two looks in a row is old.
constexpr std::chrono::seconds kStrangerAge{5};
// When no descriptor is left for somebody who comes.
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

absl::StatusOr<std::shared_ptr<TcpListener>> TcpListener::Make(
    const std::string& host, uint16_t port,
    const std::shared_ptr<SocketPoller>& poller) {
  ASSIGN_OR_RETURN(Fd socket, ListenTcp(host, port));
  ASSIGN_OR_RETURN(const uint16_t bound, PortOf(socket));
  return std::shared_ptr<TcpListener>(
      new TcpListener(std::move(socket), bound, poller));
}

absl::Status TcpListener::Expect(const TcpKeys& keys, Then then) {
  const auto poller = poller_.lock();
  if (poller == nullptr) return absl::CancelledError("the worker ends");
  MutexLock lock(mutex_);
  if (polled_ == 0) {
    ASSIGN_OR_RETURN(polled_, poller->Add(socket_, SocketPoller::For::kReading,
                                          [weak = weak_from_this()] {
                                            const auto self = weak.lock();
                                            return self == nullptr
                                                       ? Poll::kEnd
                                                       : self->Accept();
                                          }));
  }
  expected_.push_back({keys, std::move(then)});
  return absl::OkStatus();
}

void TcpListener::Forget(const std::string& key) {
  std::list<Expected> dropped;  // after the lock is
  MutexLock lock(mutex_);
  for (auto it = expected_.begin(); it != expected_.end();) {
    const auto next = std::next(it);
    if (it->keys.ours == key) dropped.splice(dropped.end(), expected_, it);
    it = next;
  }
}

size_t TcpListener::strangers() const {
  MutexLock lock(mutex_);
  return strangers_.size();
}

Poll TcpListener::Accept() {
  // So many at once: the thread has other sockets to read.
  for (int i = 0; i < 16; ++i) {
    Fd socket(accept4(socket_->get(), nullptr, nullptr,
                      SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      TakeIn(std::move(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Poll::kWhenReady;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Who waits would make the socket ready again and again.
    if (const auto poller = poller_.lock()) {
      MutexLock lock(mutex_);
      poller->After(kPause, [poller = poller_, polled = polled_] {
        if (const auto alive = poller.lock()) alive->Wake(polled);
      });
    }
    return Poll::kWhenWoken;
  }
  return Poll::kAgain;
}

void TcpListener::TakeIn(Fd socket) {
  const auto poller = poller_.lock();
  if (poller == nullptr) return;
  SetUpTcp(socket);
  const auto shared = std::make_shared<Fd>(std::move(socket));
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    if (strangers_.size() >= kMaxStrangers)
      SendAwayLocked(strangers_.begin()->first);
    number = next_stranger_++;
    strangers_[number] = {shared};
    if (!std::exchange(looking_, true)) {
      poller->After(kStrangerAge, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->SendOldAway();
      });
    }
  }
  const auto added = poller->Add(
      shared, SocketPoller::For::kReading, [weak = weak_from_this(), number] {
        const auto self = weak.lock();
        return self == nullptr ? Poll::kEnd : self->Hear(number);
      });
  if (added.ok()) return;
  MutexLock lock(mutex_);
  SendAwayLocked(number);
}

Poll TcpListener::Hear(uint64_t number) {
  std::optional<Stranger> whole;
  {
    MutexLock lock(mutex_);
    const auto found = strangers_.find(number);
    if (found == strangers_.end()) return Poll::kEnd;
    Stranger& stranger = found->second;
    char key[kTcpKeyBytes];
    const ssize_t got = recv(stranger.socket->get(), key,
                             kTcpKeyBytes - stranger.shown.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Poll::kWhenReady;
    if (got > 0) stranger.shown.append(key, static_cast<size_t>(got));
    if (got > 0 && stranger.shown.size() < kTcpKeyBytes)
      return Poll::kWhenReady;
    if (got > 0) whole = std::move(stranger);
    strangers_.erase(found);
  }
  if (whole.has_value()) Welcome(*std::move(whole));
  return Poll::kEnd;
}

void TcpListener::Welcome(Stranger stranger) {
  std::list<Expected> found;
  {
    MutexLock lock(mutex_);
    // All are compared, whichever it is.
    for (auto it = expected_.begin(); it != expected_.end();) {
      const auto next = std::next(it);
      if (SameToken(it->keys.ours, stranger.shown))
        found.splice(found.end(), expected_, it);
      it = next;
    }
  }
  if (found.empty()) {
    // Anybody may come, and as often as they like.
    LogInfo("closed a connection for tensors: it shows a wrong key");
    return;
  }
  const std::string& shown = found.front().keys.theirs;
  const ssize_t sent =
      send(stranger.socket->get(), shown.data(), shown.size(), MSG_NOSIGNAL);
  // Its poller lets go of it after this step; the new owner has another number
  // for the same socket.
  Fd socket(sent == static_cast<ssize_t>(shown.size())
                ? fcntl(stranger.socket->get(), F_DUPFD_CLOEXEC, 0)
                : -1);
  found.front().then(std::move(socket));
}

void TcpListener::SendOldAway() {
  const auto poller = poller_.lock();
  MutexLock lock(mutex_);
  looking_ = false;
  for (auto it = strangers_.begin(); it != strangers_.end();) {
    const uint64_t number = it->first;
    const bool old = std::exchange(it->second.old, true);
    ++it;
    if (old) SendAwayLocked(number);
  }
  if (strangers_.empty() || poller == nullptr) return;
  looking_ = true;
  poller->After(kStrangerAge, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->SendOldAway();
  });
}

void TcpListener::SendAwayLocked(uint64_t number) {
  const auto found = strangers_.find(number);
  if (found == strangers_.end()) return;
  shutdown(found->second.socket->get(), SHUT_RDWR);
  strangers_.erase(found);
}

}  // namespace baton::rpc
