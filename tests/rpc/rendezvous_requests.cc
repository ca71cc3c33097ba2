// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/rendezvous_requests.h"

#include <utility>

#include "rpc/rendezvous.pb.h"
#include "rpc/transports/hello.h"

namespace baton::testing {

namespace wire = rpc::wire;

namespace {

// Keeps the answer until the request is done.
template <typename Answer, typename Request>
rpc::RendezvousGroups::Cancel Ask(
    rpc::RendezvousGroups& groups, const Request& request,
    std::function<void(const Answered<Answer>&)> done,
    RendezvousClock::time_point now) {
  const auto answer = std::make_shared<Answer>();
  return groups.Handle(
      request, answer.get(),
      [answer, done = std::move(done)](const absl::Status& status) {
        done(status.ok() ? Answered<Answer>(answer) : status);
      },
      now);
}

// Returns the answer to a request that does not wait.
template <typename Answer, typename Request>
Answered<Answer> AnswerTo(rpc::RendezvousGroups& groups, const Request& request,
                          RendezvousClock::time_point now) {
  Answered<Answer> told;
  Ask<Answer>(
      groups, request, [&told](const auto& answer) { told = answer; }, now);
  return told;
}

// Of a request to renew or to leave.
template <typename Request>
Request By(const std::string& name, uint64_t incarnation) {
  Request request;
  request.set_cluster("test");
  request.set_name(name);
  request.set_incarnation(incarnation);
  return request;
}

}  // namespace

void Enter(rpc::RendezvousGroups& groups, const rpc::JoinOptions& options,
           std::function<void(const JoinResult&)> done) {
  wire::JoinRequest request;
  rpc::internal::ToWire(options, options.wanted_rank, request);
  Ask<wire::JoinAnswer>(groups, request, std::move(done),
                        RendezvousClock::now());
}

rpc::RendezvousGroups::Cancel Renew(rpc::RendezvousGroups& groups,
                                    const std::string& name,
                                    uint64_t incarnation, uint64_t known,
                                    std::chrono::milliseconds wait,
                                    std::function<void(const Renewal&)> done,
                                    RendezvousClock::time_point now) {
  auto request = By<wire::RenewRequest>(name, incarnation);
  request.set_version(known);
  request.set_wait_ms(wait.count());
  return Ask<wire::RenewAnswer>(groups, request, std::move(done), now);
}

Renewal Renewed(rpc::RendezvousGroups& groups, const std::string& name,
                uint64_t incarnation, uint64_t known,
                RendezvousClock::time_point now) {
  auto request = By<wire::RenewRequest>(name, incarnation);
  request.set_version(known);
  return AnswerTo<wire::RenewAnswer>(groups, request, now);
}

absl::Status TakenBack(rpc::RendezvousGroups& groups,
                       const rpc::JoinOptions& seat, uint64_t known,
                       RendezvousClock::time_point now) {
  auto request = By<wire::RenewRequest>(seat.self.name, seat.self.incarnation);
  request.set_cluster(seat.cluster);
  request.set_version(known);
  rpc::internal::ToWire(seat, seat.wanted_rank, *request.mutable_seat());
  return AnswerTo<wire::RenewAnswer>(groups, request, now).status();
}

absl::Status Left(rpc::RendezvousGroups& groups, const std::string& name,
                  uint64_t incarnation, RendezvousClock::time_point now) {
  return AnswerTo<wire::LeaveAnswer>(
             groups, By<wire::LeaveRequest>(name, incarnation), now)
      .status();
}

Answered<wire::ListAnswer> Listed(rpc::RendezvousGroups& groups,
                                  const std::string& cluster) {
  wire::ListRequest request;
  request.set_cluster(cluster);
  return AnswerTo<wire::ListAnswer>(groups, request, RendezvousClock::now());
}

rpc::SharedWorker ToWire(const rpc::WorkerInfo& info) {
  auto worker = std::make_shared<wire::Worker>();
  rpc::ToWire(info, *worker);
  return worker;
}

std::vector<rpc::WorkerInfo> Workers(
    const google::protobuf::RepeatedPtrField<wire::Worker>& members) {
  std::vector<rpc::WorkerInfo> workers;
  for (const wire::Worker& member : members) {
    workers.push_back(*rpc::FromWire(member));
  }
  return workers;
}

}  // namespace baton::testing
