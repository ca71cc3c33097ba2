// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_dial.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/security.h"

namespace baton::rpc {
namespace {

using Poll = SocketPoller::Then;

absl::Status DialFailure(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::Status UnderWay() { return absl::CancelledError("under way"); }

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
  // The poller releases its descriptor after this step, so the new owner gets a
  // duplicate.
  Fd owned(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (owned.valid()) {
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
  const std::string& key = keys_.theirs;
  const ssize_t sent = send(socket.get(), key.data(), key.size(), MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(key.size())
             ? absl::OkStatus()
             : DialFailure("cannot write to the socket", errno);
}

absl::Status TcpDial::HearKey(const Fd& socket) {
  char key[kTcpKeyBytes];
  const ssize_t got = recv(socket.get(), key, kTcpKeyBytes - heard_.size(), 0);
  if (got == 0) return absl::UnavailableError("it closed the socket");
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR
               ? UnderWay()
               : DialFailure("cannot read from the socket", errno);
  }
  heard_.append(key, static_cast<size_t>(got));
  if (heard_.size() < kTcpKeyBytes) return UnderWay();
  if (SameToken(heard_, keys_.ours)) return absl::OkStatus();
  return absl::PermissionDeniedError("somebody else answers there");
}

}  // namespace baton::rpc
