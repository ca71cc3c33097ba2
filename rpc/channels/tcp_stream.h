// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/channels/segment.h"

namespace baton::rpc {

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
