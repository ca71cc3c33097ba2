// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "core/timer.h"
#include "rpc/rendezvous_groups.h"

namespace baton::rpc {

namespace wire {
class JoinAnswer;
class JoinRequest;
class LeaveRequest;
class ListAnswer;
class ListRequest;
class RenewAnswer;
class RenewRequest;
}  // namespace wire

namespace internal {

// Handles the requests to a rendezvous, independently of how they arrive.
// Callers are authenticated already. Also ends expired leases. Thread-safe.
class RendezvousHandlers {
 public:
  // Called once the answer is filled in, within the call or later.
  using Done = std::function<void(const absl::Status&)>;

  // A request that may wait. The caller keeps it until it is done and destroys
  // it before the RendezvousHandlers.
  class Call {
   public:
    virtual ~Call() = default;
    virtual void Cancel() = 0;  // the client has gone
  };

  explicit RendezvousHandlers(std::shared_ptr<RendezvousGroups> groups);
  ~RendezvousHandlers();

  // `answer` must live until `done` has run.
  std::unique_ptr<Call> Join(const wire::JoinRequest& request,
                             wire::JoinAnswer* answer, Done done);
  std::unique_ptr<Call> Renew(const wire::RenewRequest& request,
                              wire::RenewAnswer* answer, Done done);
  absl::Status Leave(const wire::LeaveRequest& request);
  absl::Status List(const wire::ListRequest& request, wire::ListAnswer* answer);

 private:
  void ReapLater();

  const std::shared_ptr<RendezvousGroups> groups_;
  Timer timer_{"baton-join"};
};

}  // namespace internal
}  // namespace baton::rpc
