// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/transports/grpc.h"
#include "tests/rpc/transport_worker.h"

namespace baton::rpc {

// Not started.
inline std::unique_ptr<TestWorker> NewWorker(const std::string& name, int rank,
                                             const GrpcOptions& options = {}) {
  auto transport = MakeGrpcTransport(options);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return std::make_unique<TestWorker>(name, rank, *std::move(transport));
}

// A message of 300 kB, most of which travel in chunks, because each tensor is
// too small for a channel. Those that are given come first.
inline Message InChunks(const std::string& header,
                        std::vector<Tensor> tensors = {}) {
  const Tensor part = Tensor::Zeros({15'000}, {.dtype = DType::kU8});
  tensors.insert(tensors.end(), 20, part);
  return {header, std::move(tensors)};
}

// Without the socket.
inline std::string TcpOf(const std::string& address) {
  return address.substr(0, address.find(';'));
}

}  // namespace baton::rpc
