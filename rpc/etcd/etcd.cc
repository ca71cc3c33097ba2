// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/etcd/etcd.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/etcd.grpc.pb.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kScheme[] = "etcd://";
constexpr char kEtcdName[] = "etcd";  // in the certificate of each node
// A node that has not answered for so long is not waited for alone. Nodes of a
// healthy etcd answer within a few milliseconds.
constexpr milliseconds kHedge{50};

struct Node {
  std::string address;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
};

// One call of one node.
template <typename Request, typename Answer>
struct Attempt {
  grpc::ClientContext context;
  Request request;
  Answer answer;
};

// The race of one call's attempts. Thread-safe.
class Race {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Race(size_t nodes) : ended_(nodes) {}

  void End(size_t node, const grpc::Status& status) {
    MutexLock lock(mutex_);
    ended_[node] = status;
    changed_.NotifyAll();
  }
  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  // Waits until a node has answered, or `node` has failed, or the race was
  // stopped.
  void Await(size_t node, Clock::time_point until) {
    MutexLock lock(mutex_);
    while (!ended_[node] && !Over() && changed_.WaitUntil(mutex_, until)) {
    }
  }
  // Waits until the node's call has ended.
  void AwaitEnd(size_t node) {
    MutexLock lock(mutex_);
    while (!ended_[node]) changed_.Wait(mutex_);
  }
  std::optional<size_t> winner() {
    MutexLock lock(mutex_);
    const auto won = Winner();
    if (won == ended_.end()) return std::nullopt;
    return static_cast<size_t>(won - ended_.begin());
  }
  bool stopped() {
    MutexLock lock(mutex_);
    return stopped_;
  }
  // How the node's call ended; one that has not is silent.
  grpc::Status Ended(size_t node) {
    MutexLock lock(mutex_);
    return ended_[node].value_or(
        grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, ""));
  }

 private:
  using Ends = std::vector<std::optional<grpc::Status>>;

  Ends::const_iterator Winner() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::find_if(ended_.begin(), ended_.end(),
                        [](const auto& end) { return end && end->ok(); });
  }
  bool Over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || Winner() != ended_.end();
  }

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Ends ended_ ABSL_GUARDED_BY(mutex_);  // by node
};

// Whether another call, or another node, may do better.
bool MayPass(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:  // it wants a user's name
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::NOT_FOUND:
      return false;
    default:
      return true;
  }
}

class GrpcEtcd final : public Etcd {
 public:
  GrpcEtcd(std::string address, const std::vector<std::string>& nodes,
           Security security);

  absl::StatusOr<std::string> Get(const std::string& key, Deadline deadline,
                                  const Watch& watch) override;
  absl::StatusOr<seconds> Grant(int64_t lease, seconds ttl,
                                Deadline deadline) override;
  absl::StatusOr<seconds> KeepAlive(int64_t lease, Deadline deadline) override;
  absl::Status Revoke(int64_t lease, Deadline deadline) override;
  absl::Status Create(const std::string& key, const std::string& value,
                      int64_t lease, Deadline deadline) override;

 private:
  // Makes a call of a stub's callback API. It may reach etcd several times, by
  // several nodes, so it must do no more then than once.
  template <typename Answer, typename Request, typename Stub, typename Async>
  absl::StatusOr<Answer> Ask(
      std::unique_ptr<Stub> Node::*service,
      void (Async::*call)(grpc::ClientContext*, const Request*, Answer*,
                          std::function<void(grpc::Status)>),
      const Request& request, Deadline deadline, const Watch& watch = {});
  absl::Status Failure(Race& race) const;
  absl::Status ReasonOf(const grpc::Status& status) const;

  const std::string address_;
  const Security security_;
  std::vector<Node> nodes_;
  size_t first_ = 0;  // the node that answered last
};

GrpcEtcd::GrpcEtcd(std::string address, const std::vector<std::string>& nodes,
                   Security security)
    : address_(std::move(address)), security_(std::move(security)) {
  // etcd ends connections that are checked more often than it likes.
  grpc::ChannelArguments arguments = DialArguments(Keepalive::kOff);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  for (const std::string& node : nodes) {
    const auto channel = SecureChannel(security_, node, kEtcdName, arguments);
    nodes_.push_back({node, etcdserverpb::KV::NewStub(channel),
                      etcdserverpb::Lease::NewStub(channel)});
  }
}

template <typename Answer, typename Request, typename Stub, typename Async>
absl::StatusOr<Answer> GrpcEtcd::Ask(
    std::unique_ptr<Stub> Node::*service,
    void (Async::*call)(grpc::ClientContext*, const Request*, Answer*,
                        std::function<void(grpc::Status)>),
    const Request& request, Deadline deadline, const Watch& watch) {
  const size_t count = nodes_.size();
  const auto race = std::make_shared<Race>(count);
  if (watch != nullptr && !watch([race] { race->Stop(); }))
    return absl::CancelledError("stopping");
  std::vector<std::unique_ptr<Attempt<Request, Answer>>> attempts(count);
  const auto await = [&](size_t node, milliseconds limit) {
    race->Await(node, Race::Clock::now() + limit);
    return !race->winner() && !race->stopped();
  };
  const auto left = std::max(std::chrono::duration_cast<milliseconds>(
                                 deadline - std::chrono::system_clock::now()),
                             milliseconds(0));
  bool open = true;
  for (size_t i = 0; i < count && open; ++i) {
    const size_t node = (first_ + i) % count;
    auto& attempt = attempts[node];
    attempt = std::make_unique<Attempt<Request, Answer>>();
    attempt->request = request;
    attempt->context.set_deadline(deadline);
    // A node that is cut off from the others fails instead of waiting for them.
    attempt->context.AddMetadata("hasleader", "true");
    ((*(nodes_[node].*service)->async()).*call)(
        &attempt->context, &attempt->request, &attempt->answer,
        [race, node](const grpc::Status& status) { race->End(node, status); });
    open = await(node, std::min(kHedge, left));
  }
  // gRPC ends each at its deadline.
  for (size_t node = 0; node < count && open; ++node) {
    open = await(node, left + seconds(1));
  }
  if (watch != nullptr) watch(nullptr);
  // Calls that lost the race end here: gRPC aborts if one of its own threads
  // drops the last channel, which a call holds.
  for (size_t node = 0; node < count; ++node) {
    if (attempts[node] == nullptr) continue;
    attempts[node]->context.TryCancel();
    race->AwaitEnd(node);
  }
  if (const auto winner = race->winner()) {
    first_ = *winner;
    return attempts[first_]->answer;
  }
  if (race->stopped()) return absl::CancelledError("stopping");
  first_ = (first_ + 1) % count;
  return Failure(*race);
}

// What one node says tells more than that another one cannot be reached.
absl::Status GrpcEtcd::Failure(Race& race) const {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const grpc::Status ended = race.Ended(node);
    if (!MayPass(ended.error_code())) {
      return Annotate(
          absl::Status(static_cast<absl::StatusCode>(ended.error_code()),
                       ended.error_message()),
          absl::StrCat("etcd at ", address_));
    }
  }
  return Annotate(
      Annotate(ReasonOf(race.Ended(0)), nodes_[0].address),
      absl::StrCat("the etcd at ", address_,
                   " does not serve (are most of its nodes started, and are "
                   "the addresses right?)"));
}

absl::Status GrpcEtcd::ReasonOf(const grpc::Status& status) const {
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnavailableError("a server that is none listens there");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError("it is silent");
    default:
      return ExplainFailure(security_, kEtcdName,
                            absl::UnavailableError(status.error_message()));
  }
}

absl::StatusOr<std::string> GrpcEtcd::Get(const std::string& key,
                                          Deadline deadline,
                                          const Watch& watch) {
  etcdserverpb::RangeRequest request;
  request.set_key(key);
  ASSIGN_OR_RETURN(const auto found,
                   Ask(&Node::kv, &etcdserverpb::KV::Stub::async::Range,
                       request, deadline, watch));
  if (found.kvs().empty()) {
    return absl::NotFoundError(
        absl::StrCat("the etcd at ", address_, " has no ", key));
  }
  return found.kvs(0).value();
}

absl::StatusOr<seconds> GrpcEtcd::Grant(int64_t lease, seconds ttl,
                                        Deadline deadline) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_id(lease);
  request.set_ttl(ttl.count());
  ASSIGN_OR_RETURN(
      const auto granted,
      Ask(&Node::lease, &etcdserverpb::Lease::Stub::async::LeaseGrant, request,
          deadline));
  return seconds(granted.ttl());
}

absl::StatusOr<seconds> GrpcEtcd::KeepAlive(int64_t lease, Deadline deadline) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  ASSIGN_OR_RETURN(
      const auto kept,
      Ask(&Node::lease, &etcdserverpb::Lease::Stub::async::LeaseKeepAlive,
          request, deadline));
  if (kept.ttl() <= 0)
    return absl::NotFoundError(
        absl::StrCat("the lease at the etcd at ", address_, " has ended"));
  return seconds(kept.ttl());
}

absl::Status GrpcEtcd::Revoke(int64_t lease, Deadline deadline) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  return Ask(&Node::lease, &etcdserverpb::Lease::Stub::async::LeaseRevoke,
             request, deadline)
      .status();
}

absl::Status GrpcEtcd::Create(const std::string& key, const std::string& value,
                              int64_t lease, Deadline deadline) {
  etcdserverpb::TxnRequest request;
  etcdserverpb::Compare& absent = *request.add_compare();
  absent.set_target(etcdserverpb::Compare::CREATE);
  absent.set_key(key);
  absent.set_create_revision(0);
  etcdserverpb::PutRequest& put = *request.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(value);
  put.set_lease(lease);
  request.add_failure()->mutable_request_range()->set_key(key);
  ASSIGN_OR_RETURN(
      const auto done,
      Ask(&Node::kv, &etcdserverpb::KV::Stub::async::Txn, request, deadline));
  if (done.succeeded()) return absl::OkStatus();
  // Another node may have brought the same request to etcd before.
  for (const auto& response : done.responses()) {
    for (const auto& found : response.response_range().kvs()) {
      if (found.lease() == lease) return absl::OkStatus();
    }
  }
  return absl::AlreadyExistsError(
      absl::StrCat("the etcd at ", address_, " has ", key, " already"));
}

}  // namespace

bool IsEtcd(const std::string& address) {
  return absl::StartsWith(address, kScheme);
}

absl::StatusOr<std::vector<std::string>> NodesOfEtcd(
    const std::string& address) {
  const std::vector<std::string> nodes =
      absl::StrSplit(absl::StripPrefix(address, kScheme), ',');
  for (const std::string& node : nodes) {
    const auto parsed = ParseHostPort(node);
    if (parsed.ok() && parsed->port != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address, "\" is no etcd://host:port,host:port,...: ",
        parsed.ok() ? absl::StrCat("\"", node, "\" has no port to dial")
                    : std::string(parsed.status().message())));
  }
  return nodes;
}

absl::StatusOr<std::unique_ptr<Etcd>> Etcd::Make(const std::string& address,
                                                 const Security& security) {
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes, NodesOfEtcd(address));
  RETURN_IF_ERROR(CheckExposure(
      security, "the rendezvous would be looked for at", address));
  return std::make_unique<GrpcEtcd>(address, nodes, security);
}

}  // namespace baton::rpc::internal
