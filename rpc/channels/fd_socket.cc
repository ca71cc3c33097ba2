// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/fd_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr size_t kLongestKey = 64;
// Connections whose worker has not yet announced them over gRPC.
constexpr size_t kMaxUnauthenticated = 256;

absl::Status Failure(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError("its socket has no usable path");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<Fd> NewSocket() {
  Fd socket(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Failure("cannot make a socket", errno);
  return socket;
}

absl::Status CheckUser(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Failure("cannot tell whose socket it is", errno);
  }
  if (peer.uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("its socket belongs to user ", peer.uid));
  }
  return absl::OkStatus();
}

// A message of one byte with room for one descriptor and, in its padding, for a
// second one. It must not move, because its parts point to each other.
class FdMessage {
 public:
  FdMessage() {
    message_.msg_iov = &data_;
    message_.msg_iovlen = 1;
    message_.msg_control = ancillary_;
    message_.msg_controllen = sizeof(ancillary_);
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;

  msghdr* get() { return &message_; }
  cmsghdr* header() { return CMSG_FIRSTHDR(&message_); }
  // Returns all received descriptors, which the caller then owns. Call it once.
  std::vector<Fd> TakeAll() {
    std::vector<Fd> all;
    for (cmsghdr* part = header(); part != nullptr;
         part = CMSG_NXTHDR(&message_, part)) {
      if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
        continue;
      const size_t bytes = part->cmsg_len - CMSG_LEN(0);
      for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(part) + at, sizeof(number));
        all.emplace_back(number);
      }
    }
    return all;
  }

 private:
  char byte_ = 0;
  iovec data_{&byte_, 1};
  alignas(cmsghdr) char ancillary_[CMSG_SPACE(sizeof(int))] = {};
  msghdr message_{};
};

}  // namespace

absl::StatusOr<FdConnection> FdConnection::Dial(const std::string& path,
                                                const std::string& key) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  ASSIGN_OR_RETURN(Fd socket, NewSocket());
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return Failure("cannot connect to its socket", errno);
  }
  RETURN_IF_ERROR(CheckUser(socket));
  if (send(socket.get(), key.data(), key.size(), MSG_NOSIGNAL) < 0) {
    return Failure("cannot write to its socket", errno);
  }
  return FdConnection(std::move(socket));
}

absl::Status FdConnection::Send(const Fd& fd) {
  FdMessage message;
  cmsghdr* header = message.header();
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(header), &number, sizeof(number));
  if (sendmsg(socket_.get(), message.get(), MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot pass a segment: ", std::strerror(errno)));
}

absl::StatusOr<Fd> FdConnection::Receive() {
  FdMessage message;
  const ssize_t got =
      recvmsg(socket_.get(), message.get(), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return Failure("cannot take a segment", errno);
  std::vector<Fd> all = message.TakeAll();
  if (all.empty()) {
    // The kernel drops a descriptor for which no number is free.
    return (message.get()->msg_flags & MSG_CTRUNC) != 0
               ? Failure("cannot take a segment", EMFILE)
               : absl::NotFoundError("no segment was passed");
  }
  if (got != 1 || all.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(all.size(), " descriptors came where one was to come"));
  }
  return std::move(all.front());
}

absl::StatusOr<std::shared_ptr<FdListener>> FdListener::Make(
    const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  ASSIGN_OR_RETURN(Fd socket, NewSocket());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    return Failure("cannot listen for segments", errno);
  }
  return std::shared_ptr<FdListener>(new FdListener(path, std::move(socket)));
}

void FdListener::TakeInLocked() {
  for (;;) {
    Fd socket(
        accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) break;
    if (!CheckUser(socket).ok()) continue;
    if (unauthenticated_.size() == kMaxUnauthenticated)
      unauthenticated_.erase(unauthenticated_.begin());
    unauthenticated_.push_back({std::move(socket), {}});
  }
  for (UnauthenticatedPeer& peer : unauthenticated_) {
    if (!peer.key.empty()) continue;
    char key[kLongestKey];
    const ssize_t got = recv(peer.socket.get(), key, sizeof(key), MSG_DONTWAIT);
    if (got > 0) peer.key.assign(key, static_cast<size_t>(got));
    if (got == 0) peer.socket = Fd();
  }
  std::erase_if(unauthenticated_,
                [](const UnauthenticatedPeer& s) { return !s.socket.valid(); });
}

absl::StatusOr<FdConnection> FdListener::Accept(const std::string& key) {
  MutexLock lock(mutex_);
  TakeInLocked();
  for (UnauthenticatedPeer& peer : unauthenticated_) {
    if (peer.key != key) continue;
    FdConnection found(std::move(peer.socket));
    std::erase_if(unauthenticated_, [](const UnauthenticatedPeer& s) {
      return !s.socket.valid();
    });
    return found;
  }
  return absl::NotFoundError("nobody connected to the socket");
}

}  // namespace baton::rpc
