// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status.h"
#include "rpc/channels/tcp_socket.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"

namespace baton::rpc {
namespace {

constexpr size_t kMostUnauthenticated = 1024;
constexpr char kUnix[] = "unix:";

// To be called after CheckListen, as it takes over the path of a dead process.
absl::StatusOr<Fd> ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  unlink(path.c_str());
  // Nobody can connect before `listen`.
  if (!socket.valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  return socket;
}

// Removes the zone of an IPv6 address, which the two kinds of names write
// differently.
std::string WithoutZone(std::string name) {
  const size_t zone = name.find('%');
  if (zone != std::string::npos) {
    name.erase(zone, name.find(']', zone) - zone);
  }
  return name;
}

// From gRPC's "ipv4:10.0.0.1:5" or "ipv6:%5B::1%5D:5".
std::string NameOf(const std::string& peer) {
  return WithoutZone(absl::StrReplaceAll(
      peer.substr(peer.find(':') + 1),
      {{"%5B", "["}, {"%5D", "]"}, {"%5b", "["}, {"%5d", "]"}}));
}

// The same for a socket; empty for a Unix socket.
std::string NameOf(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  auto* there = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket.get(), there, &size) != 0 ||
      address.ss_family == AF_UNIX ||
      getnameinfo(there, size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  const std::string name = host;
  if (address.ss_family == AF_INET6 && absl::StartsWith(name, "::ffff:") &&
      absl::StrContains(name, '.')) {
    return absl::StrCat(name.substr(7), ":", port);
  }
  return address.ss_family == AF_INET
             ? absl::StrCat(name, ":", port)
             : WithoutZone(absl::StrCat("[", name, "]:", port));
}

}  // namespace

Acceptor::Acceptor(std::chrono::milliseconds time)
    : unauthenticated_(std::make_shared<UnauthenticatedPeers>(
          poller_, kMostUnauthenticated, time)) {}

absl::StatusOr<uint16_t> Acceptor::Listen(grpc::ServerBuilder& builder,
                                          const std::string& address,
                                          const Security& security) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<GrpcAcceptor> server =
      builder.experimental().AddExternalConnectionAcceptor(
          Type::FROM_FD, PortCredentials(security, address));
  const auto add = [&](Fd socket, const std::string& path) {
    places_.push_back(
        {std::make_shared<const Fd>(std::move(socket)), server, path});
  };
  if (absl::StartsWith(address, kUnix)) {
    RETURN_IF_ERROR(CheckListen(address));
    const std::string path = address.substr(sizeof(kUnix) - 1);
    auto socket = ListenUnix(path);
    if (!socket.ok())
      return ListenFailure(address, std::string(socket.status().message()));
    add(*std::move(socket), path);
    return 0;
  }
  ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  auto sockets = ListenTcp(parsed.host, parsed.port);
  if (!sockets.ok())
    return ListenFailure(address, std::string(sockets.status().message()));
  for (Fd& socket : *sockets) add(std::move(socket), "");
  return PortOf(*places_.back().socket);
}

absl::Status Acceptor::Start() {
  RETURN_IF_ERROR(poller_->Start());
  for (const Place& place : places_) {
    RETURN_IF_ERROR(AcceptOn(poller_, place.socket,
                             [weak = weak_from_this(), &place](Fd socket) {
                               const auto self = weak.lock();
                               if (self != nullptr)
                                 self->TakeIn(place, std::move(socket));
                               return self != nullptr;
                             }));
  }
  return absl::OkStatus();
}

void Acceptor::Stop() {
  poller_->Stop();
  unauthenticated_->ShutDownAll();
  for (const Place& place : places_) {
    if (!place.path.empty()) unlink(place.path.c_str());
  }
  places_.clear();
}

void Acceptor::TakeIn(const Place& place, Fd socket) {
  if (place.path.empty()) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // The server closes its own descriptor; this one shuts the socket down.
    Fd held(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    if (!held.valid()) return;
    const std::string name = NameOf(socket);
    if (name.empty()) return;  // already closed
    unauthenticated_->Add(std::make_shared<const Fd>(std::move(held)), name);
  }
  GrpcAcceptor::NewConnectionParameters connection;
  connection.listener_fd = place.socket->get();
  connection.fd = socket.Release();
  place.server->HandleNewConnection(&connection);
}

void Acceptor::LetIn(const std::string& peer) {
  unauthenticated_->Remove(NameOf(peer));
}

bool Acceptor::MayOpen(const std::string& peer) {
  return unauthenticated_->MayBegin(NameOf(peer));
}

}  // namespace baton::rpc
