// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/security.h"

namespace baton::rpc {
namespace {

using Poll = SocketPoller::Then;

constexpr size_t kMostWithoutKey = 64;
constexpr std::chrono::milliseconds kTimeForKey{10'000};

}  // namespace

TcpListener::TcpListener(std::vector<std::shared_ptr<const Fd>> sockets,
                         uint16_t port,
                         const std::shared_ptr<SocketPoller>& poller)
    : sockets_(std::move(sockets)),
      port_(port),
      poller_(poller),
      unauthenticated_(std::make_shared<UnauthenticatedPeers>(
          poller, kMostWithoutKey, kTimeForKey)) {}

absl::StatusOr<std::shared_ptr<TcpListener>> TcpListener::Make(
    const std::string& host, uint16_t port,
    const std::shared_ptr<SocketPoller>& poller) {
  auto listening = ListenTcp(host, port);
  if (!listening.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot listen for tensors on ",
                                               host, ", port ", port, ": ",
                                               listening.status().message()));
  }
  ASSIGN_OR_RETURN(const uint16_t bound, PortOf(listening->front()));
  std::vector<std::shared_ptr<const Fd>> sockets;
  for (Fd& socket : *listening)
    sockets.push_back(std::make_shared<const Fd>(std::move(socket)));
  return std::shared_ptr<TcpListener>(
      new TcpListener(std::move(sockets), bound, poller));
}

absl::Status TcpListener::Expect(const TcpKeys& keys, Then then) {
  const auto poller = poller_.lock();
  if (poller == nullptr) return absl::CancelledError("the worker ends");
  MutexLock lock(mutex_);
  if (!std::exchange(accepting_, true)) {
    for (const auto& socket : sockets_) {
      RETURN_IF_ERROR(
          AcceptOn(poller, socket, [weak = weak_from_this()](Fd accepted) {
            const auto self = weak.lock();
            if (self != nullptr) self->TakeIn(std::move(accepted));
            return self != nullptr;
          }));
    }
  }
  expected_.push_back({keys, std::move(then)});
  return absl::OkStatus();
}

void TcpListener::Forget(const std::string& key) {
  std::list<Expected> dropped;  // destroyed after the lock
  MutexLock lock(mutex_);
  for (auto it = expected_.begin(); it != expected_.end();) {
    const auto next = std::next(it);
    if (it->keys.ours == key) dropped.splice(dropped.end(), expected_, it);
    it = next;
  }
}

void TcpListener::TakeIn(Fd socket) {
  const auto poller = poller_.lock();
  if (poller == nullptr) return;
  SetUpTcp(socket);
  const auto shared = std::make_shared<const Fd>(std::move(socket));
  const uint64_t number = unauthenticated_->Add(shared);
  const auto added =
      poller->Add(shared, SocketPoller::For::kReading,
                  [weak = weak_from_this(), number, shared,
                   shown = std::string()]() mutable {
                    const auto self = weak.lock();
                    return self == nullptr ? Poll::kEnd
                                           : self->Hear(number, *shared, shown);
                  });
  if (!added.ok()) unauthenticated_->Remove(number);
}

Poll TcpListener::Hear(uint64_t number, const Fd& socket, std::string& shown) {
  char key[kTcpKeyBytes];
  const ssize_t got = recv(socket.get(), key, kTcpKeyBytes - shown.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Poll::kWhenReady;
  if (got > 0) shown.append(key, static_cast<size_t>(got));
  if (got > 0 && shown.size() < kTcpKeyBytes) return Poll::kWhenReady;
  if (unauthenticated_->Remove(number) && got > 0) Welcome(socket, shown);
  return Poll::kEnd;
}

void TcpListener::Welcome(const Fd& socket, const std::string& shown) {
  std::list<Expected> found;
  {
    MutexLock lock(mutex_);
    // All are compared, so that the time does not depend on which one matches.
    for (auto it = expected_.begin(); it != expected_.end();) {
      const auto next = std::next(it);
      if (SameToken(it->keys.ours, shown))
        found.splice(found.end(), expected_, it);
      it = next;
    }
  }
  if (found.empty()) {
    // Not a warning: anybody can connect, as often as they like.
    LogInfo("closed a connection for tensors: it shows a wrong key");
    return;
  }
  const std::string& answer = found.front().keys.theirs;
  const ssize_t sent =
      send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  // The poller releases its descriptor after this step, so the new owner gets a
  // duplicate.
  Fd owned(sent == static_cast<ssize_t>(answer.size())
               ? fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)
               : -1);
  found.front().then(std::move(owned));
}

}  // namespace baton::rpc
