// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/call_proof.h"
#include "rpc/rendezvous.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace baton::rpc {

namespace wire {
class JoinAnswer;
class JoinRequest;
class LeaveAnswer;
class LeaveRequest;
class ListAnswer;
class ListRequest;
class RenewAnswer;
class RenewRequest;
}  // namespace wire

namespace internal {

// By which a worker asks its rendezvous, one call after the other. Where there
// is a token, each call proves that the worker knows it, and no answer counts
// of whoever does not prove the same. Thread-compatible.
class RendezvousConnection {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // Hears the context of a call before it begins, and null when it has ended.
  // False, before it begins, ends it with Cancelled.
  using Watch = std::function<bool(grpc::ClientContext*)>;

  // Unavailable when nobody answers there by `deadline`; Unauthenticated, at
  // once, when the two do not agree on TLS.
  static absl::StatusOr<std::shared_ptr<RendezvousConnection>> Make(
      const std::string& address, const RendezvousAccess& access,
      Deadline deadline);

  // Errors name the rendezvous.
  absl::Status Ask(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                   Deadline deadline);
  absl::Status Ask(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                   Deadline deadline);
  absl::Status Ask(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                   Deadline deadline, const Watch& watch);
  absl::Status Ask(const wire::ListRequest& request, wire::ListAnswer* answer,
                   Deadline deadline);

 private:
  RendezvousConnection(std::string address, const RendezvousAccess& access,
                       std::shared_ptr<grpc::Channel> channel)
      : address_(std::move(address)),
        access_(access),
        channel_(std::move(channel)),
        prover_(access.security.token) {}

  template <typename Call, typename Request>
  absl::Status Prove(Call call, const Request& request, Deadline deadline,
                     const Watch& watch = nullptr);

  const std::string address_;
  const RendezvousAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  CallProver prover_;
};

}  // namespace internal
}  // namespace baton::rpc
