// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {
namespace {

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(ipv4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr);
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const auto bad = [&](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is no host:port: ", what));
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return bad("the port is missing");
  HostPort result{address.substr(0, colon), 0};
  if (result.host.empty()) return bad("the host is missing");
  if (result.host.front() == '[') {
    if (result.host.back() != ']') return bad("a bracket is missing");
    result.host = result.host.substr(1, result.host.size() - 2);
    if (result.host.empty()) return bad("the host is missing");
    in6_addr ipv6;
    if (inet_pton(AF_INET6,
                  result.host.substr(0, result.host.find('%')).c_str(),
                  &ipv6) != 1) {
      return bad("what is in brackets is no IPv6 address");
    }
  } else if (absl::StrContains(result.host, ':')) {
    return bad("an IPv6 host must be in brackets");
  }
  if (result.host.find_first_of("[]") != std::string::npos) {
    return bad("it has a bracket too many");
  }
  // An address in brackets may name its interface: "[fe80::1%eth0]".
  const char* others = address.front() == '[' ? "-_.:%" : "-_.";
  for (const char c : result.host) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) continue;
    if (std::strchr(others, c) == nullptr || c == '\0')
      return bad("the host has a character that hosts do not have");
  }
  uint32_t port;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return bad("the port is not a number up to 65535");
  }
  result.port = static_cast<uint16_t>(port);
  return result;
}

std::string ToString(const HostPort& address) {
  const bool ipv6 = absl::StrContains(address.host, ':');
  return absl::StrCat(ipv6 ? "[" : "", address.host, ipv6 ? "]" : "", ":",
                      address.port);
}

HostPort Advertised(const HostPort& listened,
                    const std::string& advertise_host) {
  HostPort told = listened;
  if (!advertise_host.empty()) {
    told.host = advertise_host;
  } else if (told.host == "0.0.0.0" || told.host == "::") {
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    told.host = name;
  }
  return told;
}

std::vector<std::string> DialTargets(const std::string& address) {
  std::vector<std::string> unix_targets, targets;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(address, ';'))) {
    if (!absl::StartsWith(part, "unix:")) {
      if (!part.empty()) targets.push_back(part);
      continue;
    }
    struct stat info;
    if (lstat(part.c_str() + 5, &info) == 0 && S_ISSOCK(info.st_mode) &&
        info.st_uid == geteuid()) {
      unix_targets.push_back(part);
    }
  }
  targets.insert(targets.begin(), unix_targets.begin(), unix_targets.end());
  return targets;
}

absl::Status CheckDialable(const std::string& address) {
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(address, ';'))) {
    if (part.empty() || absl::StartsWith(part, "unix:")) continue;
    ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(part));
    if (parsed.port == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", part, "\" has no port to dial"));
    }
  }
  return absl::OkStatus();
}

std::string GrpcTarget(const std::string& target) {
  if (absl::StartsWith(target, "unix:")) return target;
  return absl::StrCat("dns:///", absl::StrReplaceAll(target, {{"%", "%25"}}));
}

namespace {

bool IsLocalPart(const std::string& part, Names names) {
  if (absl::StartsWith(part, "unix:")) return true;
  const auto parsed = ParseHostPort(part);
  if (!parsed.ok()) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (names == Names::kRefuse) hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  bool local = true;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    local = local && IsLoopback(one->ai_addr);
  }
  freeaddrinfo(found);
  return local;
}

}  // namespace

bool IsLocal(const std::string& address, Names names) {
  // The parts of a worker's address, or the nodes of an etcd (rpc/etcd/etcd.h).
  const std::vector<std::string> parts = absl::StrSplit(
      absl::StripPrefix(address, "etcd://"), absl::ByAnyChar(";,"));
  return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return IsLocalPart(part, names);
  });
}

absl::Status ListenFailure(const std::string& address, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", why));
}

namespace {

bool SomebodyListens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool answered = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                                sizeof(address)) == 0 ||
                        errno == EAGAIN;  // it is busy
  close(fd);
  return answered;
}

// gRPC takes over any existing socket path, so allow that only if its process
// is dead.
absl::Status CheckSocketPath(const std::string& address) {
  const std::string path = address.substr(sizeof("unix:") - 1);
  constexpr size_t kLongest = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.size() > kLongest) {
    return ListenFailure(
        address, absl::StrCat("a socket's path has ", kLongest,
                              " characters at most, this one ", path.size()));
  }
  struct stat there;
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return ListenFailure(address, "what is there is no socket");
    return SomebodyListens(path)
               ? ListenFailure(address,
                               "another process listens there; choose another")
               : absl::OkStatus();
  }
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return ListenFailure(address,
                       absl::StrCat("its folder: ", std::strerror(errno)));
}

}  // namespace

absl::Status CheckListen(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return CheckSocketPath(address);
  ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  const absl::Status listens = ListenTcp(parsed.host, parsed.port).status();
  return listens.ok() ? listens
                      : ListenFailure(address, std::string(listens.message()));
}

}  // namespace baton::rpc
