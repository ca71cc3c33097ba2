// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// Within a machine the kernel's own buffers would grow to many MB, so that what
// one end copies leaves the cache before the other end reads it. The sender's
// buffer limits that; the receiver's is larger, so that the sender waits less.
constexpr int kLocalSendBuffer = 256 << 10;
constexpr int kLocalReceiveBuffer = 1 << 20;

absl::StatusOr<TcpAddresses> Resolve(const std::string& host, uint16_t port,
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
  return TcpAddresses(found, &freeaddrinfo);
}

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(bytes);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Compares addresses of either family.
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

// A connection to an address of this machine comes from the same address,
// unless its socket was bound to another one.
bool IsWithinMachine(const Fd& socket) {
  Address here, there;
  return getsockname(socket.get(), here.get(), &here.size) == 0 &&
         getpeername(socket.get(), there.get(), &there.size) == 0 &&
         SameHost(here, there);
}

absl::Status Failure(const std::string& what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

std::string WhyNotListening(uint16_t port, int error) {
  switch (error) {
    case EADDRINUSE:
      return absl::StrCat("port ", port,
                          " is in use; choose another, or 0 for any");
    case EADDRNOTAVAIL:
      return "this machine has no such address; give one that `ip address` "
             "shows, or 0.0.0.0 for all of them";
    default:
      return std::strerror(error);
  }
}

// Listens at `port`, whatever the address says.
absl::StatusOr<Fd> ListenAt(const addrinfo& at, uint16_t port) {
  Fd socket(::socket(at.ai_family, kFlags, 0));
  if (!socket.valid()) return Failure("cannot make a socket", errno);
  const int on = 1, off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (at.ai_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  Address address;
  std::memcpy(address.get(), at.ai_addr, at.ai_addrlen);
  (at.ai_family == AF_INET6
       ? reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_port
       : reinterpret_cast<sockaddr_in&>(address.bytes).sin_port) = htons(port);
  if (bind(socket.get(), address.get(), at.ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(WhyNotListening(port, errno));
  }
  return socket;
}

}  // namespace

void SetUpTcp(const Fd& socket) {
  const auto set = [&socket](int level, int name, int value) {
    setsockopt(socket.get(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A middlebox may forget a silent connection.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  if (!IsWithinMachine(socket)) return;
  set(SOL_SOCKET, SO_SNDBUF, kLocalSendBuffer);
  set(SOL_SOCKET, SO_RCVBUF, kLocalReceiveBuffer);
}

absl::StatusOr<std::vector<Fd>> ListenTcp(const std::string& host,
                                          uint16_t port) {
  std::vector<Fd> sockets;
  absl::Status failure;
  // An IPv6 socket for all addresses also accepts IPv4 if the kernel has both.
  for (const std::string& name : host == "0.0.0.0" || host == "::"
                                     ? std::vector<std::string>{"::", "0.0.0.0"}
                                     : std::vector<std::string>{host}) {
    const auto found = Resolve(name, port, AI_PASSIVE);
    failure.Update(found.status());
    if (!found.ok()) continue;
    for (const addrinfo* at = found->get(); at != nullptr; at = at->ai_next) {
      auto socket = ListenAt(*at, port);
      failure.Update(socket.status());
      if (!socket.ok()) continue;
      if (port == 0) {
        ASSIGN_OR_RETURN(port, PortOf(*socket));
      }
      sockets.push_back(*std::move(socket));
    }
    if (!sockets.empty()) return sockets;
  }
  return failure;
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

absl::StatusOr<TcpAddresses> FindTcp(const std::string& host, uint16_t port) {
  return Resolve(host, port, 0);
}

absl::StatusOr<TcpAddresses> FindTcpAtOnce(const std::string& host,
                                           uint16_t port) {
  return Resolve(host, port, AI_NUMERICHOST);
}

std::string ToText(const addrinfo& address) {
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof(host), port,
              sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return address.ai_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                       : absl::StrCat(host, ":", port);
}

namespace {

class ClearStream final : public TcpStream {
 public:
  explicit ClearStream(Fd socket) : TcpStream(std::move(socket)) {}

  absl::Status Handshake() override { return absl::OkStatus(); }

  absl::StatusOr<size_t> Write(std::span<const iovec> parts) override {
    msghdr message = MessageOf(parts);
    return Moved(
        "cannot write to the socket",
        sendmsg(socket().get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  absl::StatusOr<size_t> Read(std::span<const iovec> parts) override {
    msghdr message = MessageOf(parts);
    const ssize_t got = recvmsg(socket().get(), &message, MSG_DONTWAIT);
    if (got == 0) return absl::UnavailableError("it closed the socket");
    return Moved("cannot read from the socket", got);
  }

 private:
  static msghdr MessageOf(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return message;
  }
  // Returns how many bytes a call with this `result` has moved.
  static absl::StatusOr<size_t> Moved(const char* what, ssize_t result) {
    if (result >= 0) return static_cast<size_t>(result);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      return size_t{0};
    return Failure(what, errno);
  }
};

}  // namespace

std::shared_ptr<TcpStream> TcpStream::Clear(Fd socket) {
  return std::make_shared<ClearStream>(std::move(socket));
}

}  // namespace baton::rpc
