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
  // "host:port" (port 0: any free one) or "unix:path". Only what is asked for
  // here is listened on: "0.0.0.0:0" opens every interface.
  std::string listen = "127.0.0.1:0";
  // The host that peers are told; default: the one listened on, or this
  // machine's name for a wildcard.
  std::string advertise_host = {};
  // Also listen on a socket in a private temporary directory, which peers of
  // the same machine and user prefer.
  bool unix_socket = true;
  // Workers of another cluster, and workers whose registries have another
  // digest (that is, other binaries), are refused.
  std::string cluster = {};
  std::string registry_digest = {};
  // What it is a digest of (Registry::Exports): refusals name what differs.
  std::map<uint64_t, std::string> exports = {};
  // A worker with this digest only looks (batonctl): it and any other may talk.
  std::string observer_digest = {};
  // How long a Send keeps trying to reach a peer that nobody has seen yet, and
  // one that was there: it has an incarnation. Unless said otherwise the latter
  // is what it may be silent of the lease, where there is one, so that who
  // stops or dies before it answers is known within the lease, too.
  std::chrono::milliseconds connect_timeout{10'000};
  std::optional<std::chrono::milliseconds> reconnect_timeout = {};
  // A connected peer that says nothing for so long is lost, kLeastLease
  // (rpc/lease.h) or more; 0: only the end of its connection tells. Both sides
  // speak often enough for the other's lease, from a thread of the transport.
  std::chrono::milliseconds lease{2'000};
  // Connections that say no hello for so long are closed; three times as long
  // has who came until it is let in.
  std::chrono::milliseconds hello_timeout{10'000};
  // CPU tensors to and from workers of the same machine and user travel through
  // shared memory: this process makes at most so much of it for all of them
  // together, and maps as much of theirs; no more than an eighth of the memory
  // that it may use (rpc/channels/shared_budget.h).
  bool shared_memory = true;
  size_t shared_memory_bytes = size_t{16} << 30;
  // With shared memory, small messages travel through it as well, and the
  // threads that read them spin for up to 50 us for what comes next.
  bool message_ring = true;
  // CPU tensors to and from workers that do not share memory with this one go
  // by a TCP connection of their own, within TLS where gRPC uses TLS, unless
  // both ends have Security::trusted_fabric (BATON_TRUSTED_FABRIC=on). The
  // port that this worker listens on for them, beside its own; 0: any free one.
  bool tcp_tensors = true;
  uint16_t tensor_port = 0;
  // Where tensors that are on a GPU where they were sent come to: a GPU of this
  // process, or the CPU. With a GPU here and there they travel by CUDA IPC on
  // one machine, and otherwise through the host.
  Device device = Device::Cpu();
  // Larger ones are neither sent nor taken. Peers are told, so that theirs fail
  // where they are sent, with ResourceExhausted.
  size_t max_message_bytes = size_t{16} << 30;
  // Reading from a peer pauses while messages of more than this have come from
  // it that the handler has not dealt with.
  size_t max_undelivered_bytes = size_t{256} << 20;
  // Call the handler on gRPC's own few threads, and `sent` with OK wherever a
  // message has left, under locks of the transport: that saves two wake-ups a
  // message. Only for handlers that never wait and run no foreign code, and
  // for a `sent` that does not call the transport on success.
  bool inline_delivery = false;
  // Served at the same address from the start, before Start; closed by
  // Shutdown.
  std::shared_ptr<RendezvousService> rendezvous = nullptr;
  // Without TLS or `insecure`, only addresses of this machine are listened on
  // and told to peers.
  Security security = {};
};

// A transport over gRPC: small messages on one stream per pair of workers,
// large tensors in chunks on a second one beside it (docs/transport.md). Also
// serves grpc.health.v1: serving from Start to Shutdown. Fails with one line
// that names the address when it cannot listen, or must not.
absl::StatusOr<std::unique_ptr<Transport>> MakeGrpcTransport(
    const GrpcOptions& options);

}  // namespace baton::rpc
