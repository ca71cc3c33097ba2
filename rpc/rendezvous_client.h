// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

// What all that a worker asks of its rendezvous has in common.
namespace baton::rpc {

namespace internal {

// Unavailable when nobody answers there by `deadline`; Unauthenticated, at
// once, when the two do not agree on TLS.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectToRendezvous(
    const std::string& address, const RendezvousAccess& access,
    std::chrono::system_clock::time_point deadline);
void ShowToken(const RendezvousAccess& access, grpc::ClientContext& context);
absl::Status AtRendezvous(const std::string& address,
                          const RendezvousAccess& access,
                          const grpc::Status& status);

}  // namespace internal
}  // namespace baton::rpc
