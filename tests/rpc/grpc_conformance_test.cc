// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "rpc/transports/grpc.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/transport_conformance.h"

namespace baton::rpc {
namespace {

// Workers whose connections ended are given up on quickly, so that the tests
// are quick; none is for its silence, which on a busy machine need not be its
// own.
TransportKind Grpc(std::string name, GrpcOptions options) {
  options.lease = std::chrono::seconds(30);
  options.connect_timeout = std::chrono::seconds(5);
  options.reconnect_timeout = std::chrono::milliseconds(1500);
  const std::string channel = options.shared_memory ? "shared memory"
                              : options.tcp_tensors ? "TCP"
                                                    : "";
  return {.name = std::move(name),
          .network =
              [options] {
                return [options] {
                  auto transport = MakeGrpcTransport(options);
                  EXPECT_TRUE(transport.ok()) << transport.status();
                  return *std::move(transport);
                };
              },
          .in_chunks = true,
          .channel = channel,
          .rings = options.shared_memory && options.message_ring};
}

// One certificate for all who come.
GrpcOptions Tls() {
  static const TestAuthority authority;
  const tools::CertificateAndKey own =
      authority.Sign({"alice", "bob", "carol", "w0", "w1", "w2"});
  return {.unix_socket = false,
          .security = {.certificate = own.certificate,
                       .key = own.key,
                       .authority = authority.own().certificate,
                       .token = std::string(64, '5')}};
}

GrpcOptions TlsBetweenHosts() {
  GrpcOptions options = Tls();
  options.shared_memory = false;
  return options;
}

GrpcOptions TlsOnTrustedFabric() {
  GrpcOptions options = TlsBetweenHosts();
  options.security.trusted_fabric = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Grpc, TransportConformance,
    ::testing::Values(
        Grpc("Tls", Tls()),
        Grpc("Tcp", {.unix_socket = false,
                     .shared_memory = false,
                     .tcp_tensors = false}),
        Grpc("Streams", {.shared_memory = false, .tcp_tensors = false}),
        Grpc("TensorsByTcp", {.unix_socket = false, .shared_memory = false}),
        Grpc("TensorsByTcpInline",
             {.shared_memory = false, .inline_delivery = true}),
        Grpc("TlsTensorsByTls", TlsBetweenHosts()),
        Grpc("TlsTensorsInClear", TlsOnTrustedFabric()),
        Grpc("TcpSharedMemory", {.unix_socket = false}),
        Grpc("SharedMemory", {}),
        Grpc("SharedMemoryNoRings", {.message_ring = false}),
        Grpc("Inline", {.inline_delivery = true})),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::rpc
