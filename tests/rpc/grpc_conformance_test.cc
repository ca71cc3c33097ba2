// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/transport_conformance.h"

namespace baton::rpc {
namespace {

// Workers that were lost are given up on quickly, so that the tests are quick.
TransportKind Grpc(GrpcOptions options) {
  options.connect_timeout = std::chrono::seconds(5);
  options.reconnect_timeout = std::chrono::milliseconds(1500);
  const std::string channel = options.shared_memory ? "shared memory"
                              : options.tcp_tensors ? "TCP"
                                                    : "";
  return {.network =
              [options] {
                return [options] {
                  auto transport = MakeGrpcTransport(options);
                  EXPECT_TRUE(transport.ok()) << transport.status();
                  return *std::move(transport);
                };
              },
          .has_bulk_lane = true,
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

GrpcOptions TlsOnTrustedFabric() {
  GrpcOptions options = Tls();
  options.shared_memory = false;
  options.security.trusted_fabric = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(GrpcTls, TransportConformance,
                         testing::Values(Grpc(Tls())));
INSTANTIATE_TEST_SUITE_P(GrpcTcp, TransportConformance,
                         testing::Values(Grpc({.unix_socket = false,
                                               .shared_memory = false,
                                               .tcp_tensors = false})));
INSTANTIATE_TEST_SUITE_P(GrpcLanes, TransportConformance,
                         testing::Values(Grpc({.shared_memory = false,
                                               .tcp_tensors = false})));
INSTANTIATE_TEST_SUITE_P(GrpcTensorsByTcp, TransportConformance,
                         testing::Values(Grpc({.unix_socket = false,
                                               .shared_memory = false})));
INSTANTIATE_TEST_SUITE_P(GrpcTensorsByTcpInline, TransportConformance,
                         testing::Values(Grpc({.shared_memory = false,
                                               .inline_delivery = true})));
INSTANTIATE_TEST_SUITE_P(GrpcTlsTensorsByTcp, TransportConformance,
                         testing::Values(Grpc(TlsOnTrustedFabric())));
INSTANTIATE_TEST_SUITE_P(GrpcTcpSharedMemory, TransportConformance,
                         testing::Values(Grpc({.unix_socket = false})));
INSTANTIATE_TEST_SUITE_P(GrpcSharedMemory, TransportConformance,
                         testing::Values(Grpc({})));
INSTANTIATE_TEST_SUITE_P(GrpcSharedMemoryNoRings, TransportConformance,
                         testing::Values(Grpc({.message_ring = false})));
INSTANTIATE_TEST_SUITE_P(GrpcInline, TransportConformance,
                         testing::Values(Grpc({.inline_delivery = true})));

}  // namespace
}  // namespace baton::rpc
