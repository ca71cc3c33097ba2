// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <netdb.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

// Sockets between machines, on which each end shows the other one a key that it
// was told by other means. Reads and writes never block.
namespace baton::rpc {

// The most bytes of one read or write, for which the end of a connection waits.
inline constexpr size_t kTcpMostAtOnce = size_t{4} << 20;

// What each end of a connection has to show.
struct TcpKeys {
  std::string ours;    // is shown to this one
  std::string theirs;  // is what this one shows
};

// Listens on all addresses of the host that are available, with one port (0 for
// any free one). A wildcard stands for those of IPv4 and IPv6. Unavailable
// gives the reason.
absl::StatusOr<std::vector<Fd>> ListenTcp(const std::string& host,
                                          uint16_t port);
absl::StatusOr<uint16_t> PortOf(const Fd& socket);

// The addresses of a host, with the port.
using TcpAddresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
// FindTcp asks the resolver, which may take long, unless the host is an
// address. The variant for at once returns nothing for a name. Unavailable
// names a host that has no address.
absl::StatusOr<TcpAddresses> FindTcp(const std::string& host, uint16_t port);
absl::StatusOr<TcpAddresses> FindTcpAtOnce(const std::string& host,
                                           uint16_t port);
// For example "10.0.0.1:5" or "[::1]:5".
std::string ToText(const addrinfo& address);

// Sets the options that both ends need on a new connection.
void SetUpTcp(const Fd& socket);

// TLS 1.3 between two ends that share a secret (RFC 8446, section 2.2: a
// pre-shared key with a Diffie-Hellman exchange). No certificate is involved:
// whoever completes the handshake has proved that it knows the secret.
struct TlsSetup {
  std::string secret = {};  // 32 random bytes
  bool client = false;      // one end is the client, the other one the server
  // The sender changes its key after so many bytes. AES-GCM is safe for about
  // 400 GB under one key (RFC 8446, section 5.5).
  uint64_t rekey_bytes = uint64_t{128} << 30;
};

// A connected, non-blocking TCP socket that carries bytes either in clear or
// within TLS. One thread may read while another one writes; the destructor
// closes the socket.
class TcpStream {
 public:
  static std::shared_ptr<TcpStream> Clear(Fd socket);
  // Returns Internal if OpenSSL cannot be set up.
  static absl::StatusOr<std::shared_ptr<TcpStream>> Tls(Fd socket,
                                                        const TlsSetup& setup);
  virtual ~TcpStream() = default;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  const Fd& socket() const { return socket_; }
  // Continues the handshake, which must be over before anything is read or
  // written. Returns OK once it is over (at once in clear), Cancelled while the
  // other end has to say more, PermissionDenied if that end does not know the
  // secret, Unavailable if the socket ends.
  virtual absl::Status Handshake() = 0;
  // Moves as many bytes of the parts, in order, as can be moved without
  // waiting, and returns their number; 0 means that nothing could be moved now.
  // After a Write that took fewer bytes than offered, the next one must offer
  // the rest of the same bytes, which may lie elsewhere by then. Returns
  // Unavailable when the socket has ended or is broken.
  virtual absl::StatusOr<size_t> Write(std::span<const iovec> parts) = 0;
  virtual absl::StatusOr<size_t> Read(std::span<const iovec> parts) = 0;

 protected:
  explicit TcpStream(Fd socket) : socket_(std::move(socket)) {}

 private:
  const Fd socket_;
};

}  // namespace baton::rpc
