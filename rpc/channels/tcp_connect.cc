// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_connect.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/security.h"

namespace baton::rpc {

namespace {

using Poll = SocketPoller::Then;

absl::Status DialFailure(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::Status UnderWay() { return absl::CancelledError("under way"); }

bool Show(const Fd& socket, const std::string& key) {
  return send(socket.get(), key.data(), key.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(key.size());
}

// For the new owner of a socket, as the poller releases its own descriptor
// after the step.
Fd Duplicate(const Fd& socket) {
  return Fd(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

TcpDial::TcpDial(const std::shared_ptr<SocketPoller>& poller,
                 TcpAddresses addresses, const TcpKeys& keys, Then then)
    : poller_(poller),
      addresses_(std::move(addresses)),
      keys_(keys),
      next_(addresses_.get()),
      then_(std::move(then)) {}

std::shared_ptr<TcpDial> TcpDial::Start(
    const std::shared_ptr<SocketPoller>& poller, TcpAddresses addresses,
    const TcpKeys& keys, std::chrono::milliseconds limit, Then then) {
  const std::shared_ptr<TcpDial> dial(
      new TcpDial(poller, std::move(addresses), keys, std::move(then)));
  poller->After(std::chrono::milliseconds(0), [dial] { dial->DialNext(); });
  poller->After(limit, [weak = dial->weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->Finish(absl::UnavailableError("it does not answer"));
    self->Cancel();
  });
  return dial;
}

// The step, if there is one, finds that it was cancelled.
void TcpDial::Cancel() {
  Then dropped;
  uint64_t polled = 0;
  {
    MutexLock lock(mutex_);
    dropped = std::exchange(then_, nullptr);
    polled = polled_;
  }
  if (const auto poller = poller_.lock()) poller->Wake(polled);
}

void TcpDial::Finish(absl::StatusOr<Fd> result) {
  Then then;
  {
    MutexLock lock(mutex_);
    then = std::exchange(then_, nullptr);
  }
  if (then != nullptr) then(std::move(result));
}

void TcpDial::DialNext() {
  const auto poller = poller_.lock();
  while (poller != nullptr && next_ != nullptr) {
    dialed_ = std::exchange(next_, next_->ai_next);
    connecting_ = shown_ = false;
    heard_.clear();
    const auto socket = std::make_shared<const Fd>(::socket(
        dialed_->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket->valid()) {
      failure_ = DialFailure("cannot make a socket", errno);
      continue;
    }
    auto polled = poller->Add(
        socket, SocketPoller::For::kWriting,
        [self = shared_from_this(), socket] { return self->Step(*socket); });
    if (polled.ok()) {
      MutexLock lock(mutex_);
      polled_ = *polled;
      return;
    }
    failure_ = polled.status();
  }
  Finish(failure_);
}

Poll TcpDial::Step(const Fd& socket) {
  {
    MutexLock lock(mutex_);
    if (then_ == nullptr) return Poll::kEnd;
  }
  absl::Status status = shown_ ? absl::OkStatus() : Connect(socket);
  if (absl::IsCancelled(status)) return Poll::kWhenReady;
  if (status.ok() && !shown_) status = ShowKey(socket);
  if (status.ok()) status = HearKey(socket);
  if (absl::IsCancelled(status)) return Poll::kWhenReadable;
  if (!status.ok()) {
    failure_ = std::move(status);
    DialNext();
    return Poll::kEnd;
  }
  if (Fd owned = Duplicate(socket); owned.valid()) {
    Finish(std::move(owned));
  } else {
    Finish(DialFailure("cannot keep the socket", errno));
  }
  return Poll::kEnd;
}

absl::Status TcpDial::Connect(const Fd& socket) {
  if (!std::exchange(connecting_, true)) {
    if (connect(socket.get(), dialed_->ai_addr, dialed_->ai_addrlen) == 0)
      return absl::OkStatus();
    return errno == EINPROGRESS ? UnderWay()
                                : DialFailure("cannot connect", errno);
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return DialFailure("cannot connect", error);
  // A spurious wake-up also shows no error, so check that it is connected.
  sockaddr_storage there;
  size = sizeof(there);
  return getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there),
                     &size) == 0
             ? absl::OkStatus()
             : UnderWay();
}

absl::Status TcpDial::ShowKey(const Fd& socket) {
  SetUpTcp(socket);
  shown_ = true;
  return Show(socket, keys_.theirs)
             ? absl::OkStatus()
             : DialFailure("cannot write to the socket", errno);
}

absl::Status TcpDial::HearKey(const Fd& socket) {
  char key[kKeyBytes];
  const ssize_t got = recv(socket.get(), key, kKeyBytes - heard_.size(), 0);
  if (got == 0) return absl::UnavailableError("it closed the socket");
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR
               ? UnderWay()
               : DialFailure("cannot read from the socket", errno);
  }
  heard_.append(key, static_cast<size_t>(got));
  if (heard_.size() < kKeyBytes) return UnderWay();
  if (SameToken(heard_, keys_.ours)) return absl::OkStatus();
  return absl::PermissionDeniedError("somebody else answers there");
}

namespace {

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
  char key[kKeyBytes];
  const ssize_t got = recv(socket.get(), key, kKeyBytes - shown.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Poll::kWhenReady;
  if (got > 0) shown.append(key, static_cast<size_t>(got));
  if (got > 0 && shown.size() < kKeyBytes) return Poll::kWhenReady;
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
  const bool told = Show(socket, found.front().keys.theirs);
  found.front().then(told ? Duplicate(socket) : Fd());
}

}  // namespace baton::rpc
