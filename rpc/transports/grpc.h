// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/security.h"
#include "rpc/transport.h"

namespace baton::rpc {

class RendezvousService;

struct GrpcOptions {
  // "host:port" (port 0 for any free one) or "unix:path". The worker listens
  // only where it is told to: "0.0.0.0:0" opens every interface.
  std::string listen = "127.0.0.1:0";
  // The host that peers are told. The default is the one in `listen`, or this
  // machine's name for a wildcard.
  std::string advertise_host = {};
  // Also listen on a socket in a private temporary directory, which peers of
  // the same machine and user prefer.
  bool unix_socket = true;
  // Workers of another cluster, and workers whose registries have another
  // digest (that is, other binaries), are refused.
  std::string cluster = {};
  std::string registry_digest = {};
  // The functions that the digest stands for (Registry::Exports), so that a
  // refusal can name what differs.
  std::map<uint64_t, std::string> exports = {};
  // The digest of observers, which may connect to any worker (batonctl).
  std::string observer_digest = {};
  // How long a Send tries to reach a peer that nobody has seen yet, and one
  // that has been there, that is, has an incarnation. The default of the latter
  // is the longest silence that the lease allows, if there is one, so that a
  // peer that stops before it answers is also found out within the lease.
  std::chrono::milliseconds connect_timeout{10'000};
  std::optional<std::chrono::milliseconds> reconnect_timeout = {};
  // A connected peer that is silent for so long is lost. At least kLeastLease
  // (rpc/worker.h), or 0: then only the end of the connection shows a loss. A
  // thread of the transport sends often enough for the leases of both ends.
  std::chrono::milliseconds lease{2'000};
  // A stream is closed if it brings no hello within this time, and a connection
  // if its other end is not authenticated within three times this time.
  std::chrono::milliseconds hello_timeout{10'000};
  // CPU tensors to and from workers of the same machine and user travel through
  // shared memory. This process makes at most so many bytes of it for all of
  // them together, and maps at most as many of theirs; both are limited to an
  // eighth of the memory that it may use (rpc/channels/shared_budget.h).
  bool shared_memory = true;
  size_t shared_memory_bytes = size_t{16} << 30;
  // With shared memory, small messages travel through it as well, and the
  // threads that read them spin for up to 50 us before they sleep.
  bool message_ring = true;
  // CPU tensors to and from workers that do not share memory with this one use
  // a TCP connection of their own. It uses TLS where gRPC does, unless both
  // ends have Security::trusted_fabric (BATON_TRUSTED_FABRIC=on). The worker
  // listens for it on `tensor_port`, 0 for any free port.
  bool tcp_tensors = true;
  uint16_t tensor_port = 0;
  // The device on which GPU tensors of peers arrive: a GPU of this process, or
  // the CPU. Between two GPUs of one machine they travel by CUDA IPC, otherwise
  // through the host.
  Device device = Device::Cpu();
  // Larger messages are neither sent nor accepted. Peers are told the limit, so
  // that their sends fail with ResourceExhausted.
  size_t max_message_bytes = size_t{16} << 30;
  // Reading from a peer pauses while messages of more bytes than this have
  // arrived from it and are not handled yet.
  size_t max_undelivered_bytes = size_t{256} << 20;
  // Calls the handler on gRPC's own few threads, and `sent` with OK wherever a
  // message has left, under locks of the transport, which saves two wake-ups
  // per message. The handler must never wait or run foreign code, and `sent`
  // must not call the transport on success.
  bool inline_delivery = false;
  // Served at the same address from before Start until Shutdown.
  std::shared_ptr<RendezvousService> rendezvous = nullptr;
  // Without TLS or `insecure`, the worker listens only on addresses of this
  // machine and tells peers no others.
  Security security = {};
};

// Makes a transport over gRPC: each pair of workers has one stream, and large
// tensors travel by channels beside it or, without any, in chunks
// (docs/transport.md). It also serves grpc.health.v1 from Start to Shutdown. If
// it cannot or must not listen, the error is one line that names the address.
absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcOptions& options);

}  // namespace baton::rpc
