// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/worker.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

// What all that a worker asks of its rendezvous has in common.
namespace baton::rpc {

namespace wire {
class Member;
}  // namespace wire

namespace internal {

// Unavailable when nobody answers there by `deadline`.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectToRendezvous(
    const std::string& address, std::chrono::system_clock::time_point deadline);
absl::Status AtRendezvous(const std::string& address,
                          const grpc::Status& status);
absl::StatusOr<WorkerInfo> FromWire(const wire::Member& in);

}  // namespace internal
}  // namespace baton::rpc
