// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/rendezvous.h"
#include "rpc/rendezvous_groups.h"

// Requests to a rendezvous that no connection carries, of workers of the
// cluster "test" unless they name another one.
namespace baton::testing {

template <typename Answer>
using Answered = absl::StatusOr<std::shared_ptr<const Answer>>;
using JoinResult = Answered<rpc::wire::JoinAnswer>;
using Renewal = Answered<rpc::wire::RenewAnswer>;
using RendezvousClock = rpc::RendezvousGroups::Clock;

void Enter(rpc::RendezvousGroups& groups, const rpc::JoinOptions& options,
           std::function<void(const JoinResult&)> done);
// A member renews its lease with the version `known` of its list, and waits for
// changes for `wait`. The result ends the wait.
rpc::RendezvousGroups::Cancel Renew(rpc::RendezvousGroups& groups,
                                    const std::string& name,
                                    uint64_t incarnation, uint64_t known,
                                    std::chrono::milliseconds wait,
                                    std::function<void(const Renewal&)> done,
                                    RendezvousClock::time_point now);
// Returns what it is told if it does not wait.
Renewal Renewed(rpc::RendezvousGroups& groups, const std::string& name,
                uint64_t incarnation, uint64_t known,
                RendezvousClock::time_point now = RendezvousClock::now());
// Returns what a former member is told that asks to have its seat back.
absl::Status TakenBack(rpc::RendezvousGroups& groups,
                       const rpc::JoinOptions& seat, uint64_t known,
                       RendezvousClock::time_point now);
absl::Status Left(rpc::RendezvousGroups& groups, const std::string& name,
                  uint64_t incarnation,
                  RendezvousClock::time_point now = RendezvousClock::now());
Answered<rpc::wire::ListAnswer> Listed(rpc::RendezvousGroups& groups,
                                       const std::string& cluster);

rpc::SharedWorker ToWire(const rpc::WorkerInfo& info);
std::vector<rpc::WorkerInfo> Workers(
    const google::protobuf::RepeatedPtrField<rpc::wire::Worker>& members);

}  // namespace baton::testing
