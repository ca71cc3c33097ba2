// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/executor.h"
#include "core/status.h"
#include "rpc/security.h"

namespace baton::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// How often who waits looks whether it is still wanted.
constexpr std::chrono::milliseconds kStillWanted{50};

// Within a machine the kernel's own buffers grow to many MB, and what one end
// copies has left the cache before the other one does: the sender's bounds
// that. The receiver's is larger, so that the sender waits less for its
// wake-ups.
constexpr int kLocalSendBuffer = 256 << 10;
constexpr int kLocalReceiveBuffer = 1 << 20;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host, uint16_t port,
                                  int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (unknown != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot find ", host, ": ", gai_strerror(unknown)));
  }
  return Addresses(found, &freeaddrinfo);
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(bytes);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Of either address family.
bool SameHost(const Address& one, const Address& other) {
  if (one.bytes.ss_family != other.bytes.ss_family) return false;
  if (one.bytes.ss_family == AF_INET6) {
    const auto &a = reinterpret_cast<const sockaddr_in6&>(one.bytes),
               &b = reinterpret_cast<const sockaddr_in6&>(other.bytes);
    return std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof(a.sin6_addr)) == 0;
  }
  return reinterpret_cast<const sockaddr_in&>(one.bytes).sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in&>(other.bytes).sin_addr.s_addr;
}

// A connection to an address of this machine comes from the same one, unless
// it was bound to another.
bool IsWithinMachine(const Fd& socket) {
  Address here, there;
  return getsockname(socket.get(), here.get(), &here.size) == 0 &&
         getpeername(socket.get(), there.get(), &there.size) == 0 &&
         SameHost(here, there);
}

absl::Status Failure(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

// Until when, and whether still.
struct Patience {
  Clock::time_point until;
  const std::function<bool()>& wanted;
};

absl::Status Await(const Fd& socket, short events, const Patience& patience) {
  for (;;) {
    if (!patience.wanted()) return absl::CancelledError("nobody waits for it");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        patience.until - Clock::now());
    if (left.count() <= 0) return absl::UnavailableError("it does not answer");
    pollfd one{.fd = socket.get(), .events = events, .revents = 0};
    const int ready =
        poll(&one, 1, static_cast<int>(std::min(left, kStillWanted).count()));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR)
      return Failure("cannot wait for the socket", errno);
  }
}

absl::StatusOr<Fd> Connect(const addrinfo& to, const Patience& patience) {
  Fd socket(::socket(to.ai_family, kFlags, 0));
  if (!socket.valid()) return Failure("cannot make a socket", errno);
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return Failure("cannot connect", errno);
    RETURN_IF_ERROR(Await(socket, POLLOUT, patience));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Failure("cannot connect", error);
  }
  SetUpTcp(socket);
  return socket;
}

absl::Status ShowKeys(const Fd& socket, const TcpKeys& keys,
                      const Patience& patience) {
  const std::string& shown = keys.theirs;
  const ssize_t sent =
      send(socket.get(), shown.data(), shown.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(shown.size()))
    return Failure("cannot write to the socket", errno);
  std::string got(kTcpKeyBytes, '\0');
  for (size_t have = 0; have < got.size();) {
    RETURN_IF_ERROR(Await(socket, POLLIN, patience));
    const ssize_t more =
        recv(socket.get(), got.data() + have, got.size() - have, 0);
    if (more == 0) return absl::UnavailableError("it closed the socket");
    if (more > 0) have += static_cast<size_t>(more);
    if (more < 0 && errno != EAGAIN && errno != EINTR)
      return Failure("cannot read from the socket", errno);
  }
  if (SameToken(got, keys.ours)) return absl::OkStatus();
  return absl::PermissionDeniedError("somebody else answers there");
}

}  // namespace

void SetUpTcp(const Fd& socket) {
  const auto set = [&socket](int level, int name, int value) {
    setsockopt(socket.get(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // What is between the two may forget a connection that is quiet.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  if (!IsWithinMachine(socket)) return;
  set(SOL_SOCKET, SO_SNDBUF, kLocalSendBuffer);
  set(SOL_SOCKET, SO_RCVBUF, kLocalReceiveBuffer);
}

absl::StatusOr<Fd> ListenTcp(const std::string& host, uint16_t port) {
  const std::string what =
      absl::StrCat("cannot listen for tensors on ", host, ", port ", port);
  ASSIGN_OR_RETURN(const Addresses found, Resolve(host, port, AI_PASSIVE));
  Fd socket(::socket(found->ai_family, kFlags, 0));
  if (!socket.valid()) return Failure(what, errno);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return Failure(what, errno);
  }
  return socket;
}

absl::StatusOr<uint16_t> PortOf(const Fd& socket) {
  Address address;
  if (getsockname(socket.get(), address.get(), &address.size) != 0)
    return Failure("cannot tell the port of a socket", errno);
  if (address.bytes.ss_family == AF_INET6) {
    return ntohs(
        reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.bytes).sin_port);
}

absl::StatusOr<Fd> DialTcp(const std::string& host, uint16_t port,
                           const TcpKeys& keys, std::chrono::milliseconds limit,
                           const std::function<bool()>& wanted) {
  const BlockingScope blocking;
  const Patience patience{Clock::now() + limit, wanted};
  ASSIGN_OR_RETURN(const Addresses found, Resolve(host, port, 0));
  absl::Status failure;
  for (const addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
    auto socket = Connect(*to, patience);
    failure = socket.ok() ? ShowKeys(*socket, keys, patience) : socket.status();
    if (failure.ok()) return socket;
  }
  return failure;
}

}  // namespace baton::rpc
