// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous_client.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_wire.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"
#include "rpc/wait_notice.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// The service ends a call at its timeout, with the names of missing workers.
// The client's own deadline is later by this much, for a service that does not
// answer.
constexpr milliseconds kGrace{2000};
constexpr milliseconds kProbe{200};
// Between two looks at whether connecting was ended.
constexpr milliseconds kLook{50};

absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()),
          status.error_message()};
}

// Returns why the last attempt to connect failed, or OK if it did not.
absl::Status LastFailure(const std::shared_ptr<grpc::Channel>& channel,
                         const RendezvousAccess& access) {
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + kProbe);
  wire::LeaveAnswer answer;
  const grpc::Status status = wire::Rendezvous::NewStub(channel)->Leave(
      &context, wire::LeaveRequest(), &answer);
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return absl::OkStatus();
  }
  return ExplainFailure(access.security, access.name,
                        absl::UnavailableError(status.error_message()));
}

absl::Status AwaitConnected(const std::shared_ptr<grpc::Channel>& channel,
                            const RendezvousAccess& access,
                            system_clock::time_point deadline,
                            const std::atomic<bool>& ended) {
  absl::Status failure = absl::UnavailableError(
      "nobody answers there; is it started, and is the address right?");
  while (!ended) {
    const grpc_connectivity_state state = channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      absl::Status last = LastFailure(channel, access);
      if (absl::IsUnauthenticated(last)) return last;
      if (absl::StrContains(last.message(), "--tls")) failure = std::move(last);
    }
    while (!channel->WaitForStateChange(
        state, std::min(deadline, system_clock::now() + kLook))) {
      if (ended) break;
      if (system_clock::now() >= deadline) return failure;
    }
  }
  return absl::CancelledError("stopping");
}

}  // namespace

namespace internal {
namespace {

absl::Status AtRendezvous(const std::string& address,
                          const RendezvousAccess& access,
                          const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", address,
                     ": a server that is none listens there"));
  }
  absl::Status why = FromGrpc(status);
  if (absl::IsUnavailable(why)) {
    why = ExplainFailure(access.security, access.name, why);
  }
  return Annotate(why, absl::StrCat("rendezvous at ", address));
}

// True for codes that gRPC may return by itself, without an answer of the
// service.
bool IsOfGrpc(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    default:
      return false;
  }
}

std::string ShownBy(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto shown = metadata.find(kProofKey);
  if (shown == metadata.end()) return "";
  return {shown->second.data(), shown->second.size()};
}

// A connection that uses gRPC.
class GrpcConnection final : public RendezvousConnection {
 public:
  static absl::StatusOr<std::shared_ptr<GrpcConnection>> Make(
      const std::string& address, const RendezvousAccess& access,
      Deadline deadline, const Watch& watch = nullptr);

  absl::Status Ask(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                   Deadline deadline) override {
    return Prove(&wire::Rendezvous::Stub::Join, request, answer, deadline);
  }
  absl::Status Ask(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                   Deadline deadline) override {
    return Prove(&wire::Rendezvous::Stub::Leave, request, answer, deadline);
  }
  absl::Status Ask(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&wire::Rendezvous::Stub::Renew, request, answer, deadline,
                 watch);
  }
  absl::Status Ask(const wire::ListRequest& request, wire::ListAnswer* answer,
                   Deadline deadline) override {
    return List(request, answer, deadline, nullptr);
  }
  absl::Status List(const wire::ListRequest& request, wire::ListAnswer* answer,
                    Deadline deadline, const Watch& watch) {
    return Prove(&wire::Rendezvous::Stub::List, request, answer, deadline,
                 watch);
  }

 private:
  GrpcConnection(std::string address, const RendezvousAccess& access,
                 std::shared_ptr<grpc::Channel> channel)
      : address_(std::move(address)),
        access_(access),
        channel_(std::move(channel)),
        prover_(access.security.token) {}

  template <typename Request, typename Answer>
  using Call = grpc::Status (wire::Rendezvous::Stub::*)(grpc::ClientContext*,
                                                        const Request&,
                                                        Answer*);
  template <typename Request, typename Answer>
  absl::Status Prove(Call<Request, Answer> call, const Request& request,
                     Answer* answer, Deadline deadline,
                     const Watch& watch = nullptr);

  const std::string address_;
  const RendezvousAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  CallProver prover_;
};

absl::StatusOr<std::shared_ptr<GrpcConnection>> GrpcConnection::Make(
    const std::string& address, const RendezvousAccess& access,
    Deadline deadline, const Watch& watch) {
  // A worker's address may have several forms; the first is reachable from all
  // machines.
  const std::string target(*absl::StrSplit(address, ';').begin());
  if (!absl::StartsWith(target, "unix:")) {
    RETURN_IF_ERROR(Annotate(ParseHostPort(target).status(), "rendezvous"));
  }
  grpc::ChannelArguments arguments = DialArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  auto channel = SecureChannel(access.security, target, access.name, arguments);
  std::atomic<bool> ended = false;
  if (watch != nullptr && !watch([&ended] { ended = true; }))
    return absl::CancelledError("stopping");
  const absl::Status connected =
      AwaitConnected(channel, access, deadline, ended);
  if (watch != nullptr) watch(nullptr);
  RETURN_IF_ERROR(Annotate(
      connected, absl::StrCat("cannot reach the rendezvous at ", target)));
  return std::shared_ptr<GrpcConnection>(
      new GrpcConnection(address, access, std::move(channel)));
}

template <typename Request, typename Answer>
absl::Status GrpcConnection::Prove(Call<Request, Answer> call,
                                   const Request& request, Answer* answer,
                                   Deadline deadline, const Watch& watch) {
  const auto stub = wire::Rendezvous::NewStub(channel_);
  const std::string asked = prover_.has_token() ? Asked(request) : "";
  for (bool again = false;; again = true) {
    grpc::ClientContext context;
    context.set_deadline(deadline);
    if (prover_.has_token()) {
      ASSIGN_OR_RETURN(const std::string shown, prover_.Show(asked));
      context.AddMetadata(kProofKey, shown);
    }
    if (watch != nullptr && !watch([&context] { context.TryCancel(); }))
      return absl::CancelledError("stopping");
    const grpc::Status status = ((*stub).*call)(&context, request, answer);
    if (watch != nullptr) watch(nullptr);
    const std::string shown = ShownBy(context);
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !again &&
        prover_.has_token() && prover_.TakeChallenge(shown)) {
      continue;
    }
    if (prover_.has_token() && !IsOfGrpc(status.error_code())) {
      RETURN_IF_ERROR(Annotate(prover_.CheckAnswer(shown),
                               absl::StrCat("rendezvous at ", address_)));
    }
    return status.ok() ? absl::OkStatus()
                       : AtRendezvous(address_, access_, status);
  }
}

}  // namespace

RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access) {
  return [address, access](RendezvousConnection::Deadline deadline)
             -> absl::StatusOr<std::shared_ptr<RendezvousConnection>> {
    return GrpcConnection::Make(address, access, deadline);
  };
}

}  // namespace internal

using internal::DialerOf;
using internal::FromWire;
using internal::RendezvousConnection;

absl::StatusOr<std::vector<WorkerInfo>> ParseWorkerList(
    const std::string& text) {
  std::vector<WorkerInfo> workers;
  for (const std::string& entry :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" in the list of workers is no name=host:port"));
    }
    WorkerInfo worker{entry.substr(0, equals),
                      Rank{static_cast<int32_t>(workers.size())}, 0,
                      entry.substr(equals + 1)};
    RETURN_IF_ERROR(CheckWorkerName(worker.name));
    if (!absl::StartsWith(worker.address, "unix:")) {
      ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(worker.address));
      if (parsed.port == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("worker ", worker.name,
                         " needs a port other than 0 in the list of workers"));
      }
    }
    for (const WorkerInfo& other : workers) {
      if (other.name != worker.name && other.address != worker.address) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", entry, "\" repeats the name or the address of worker ",
          other.name, " in the list of workers"));
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

namespace {

std::string OthersAwaited(const std::string& address,
                          const JoinOptions& options) {
  const std::string place =
      absl::StrCat("waits at the rendezvous at ", address);
  if (options.world_size == kOneMore) {
    return absl::StrCat(place, " to be let in by cluster ", options.cluster);
  }
  return absl::StrCat(place, " until ", options.world_size,
                      " workers of cluster ", options.cluster, " have come");
}

}  // namespace

absl::StatusOr<Membership> Join(const std::string& address,
                                const JoinOptions& options) {
  return internal::JoinBy(internal::DialerOf(address, options.access), address,
                          options);
}

absl::StatusOr<Membership> internal::JoinBy(const RendezvousDialer& dial,
                                            const std::string& address,
                                            const JoinOptions& options) {
  RETURN_IF_ERROR(CheckWorkerName(options.self.name));
  RETURN_IF_ERROR(CheckExposure(options.access.security,
                                "a worker would talk to the rendezvous at",
                                address));
  const auto deadline = system_clock::now() + options.timeout;
  WaitNotice notice(
      absl::StrCat("worker ", options.self.name),
      absl::StrCat("waits for the rendezvous at ", address,
                   ", where nobody answers yet (is it started, and is the "
                   "address right?)"),
      WaitNotice::Clock::now() + options.timeout);
  ASSIGN_OR_RETURN(const std::shared_ptr<RendezvousConnection> connection,
                   dial(deadline));
  notice.Now(OthersAwaited(address, options));
  wire::JoinRequest request;
  internal::ToWire(options, options.wanted_rank, request);
  request.set_timeout_ms(std::max<int64_t>(
      1,
      std::chrono::duration_cast<milliseconds>(deadline - system_clock::now())
          .count()));
  wire::JoinAnswer answer;
  RETURN_IF_ERROR(connection->Ask(request, &answer, deadline + kGrace));
  Membership joined{.version = answer.version(), .workers = {}};
  bool self_is_there = false;
  for (const wire::Member& member : answer.members()) {
    ASSIGN_OR_RETURN(WorkerInfo worker, FromWire(member));
    self_is_there |= worker.name == options.self.name &&
                     worker.incarnation == options.self.incarnation;
    joined.workers.push_back(std::move(worker));
  }
  if (!self_is_there ||
      static_cast<int>(joined.workers.size()) < options.world_size) {
    return absl::InternalError(absl::StrCat(
        "the rendezvous at ", address, " gave a list that makes no sense"));
  }
  return joined;
}

absl::Status Leave(const std::string& address, const std::string& cluster,
                   const WorkerInfo& self, milliseconds timeout,
                   const RendezvousAccess& access) {
  const auto deadline = system_clock::now() + timeout;
  ASSIGN_OR_RETURN(const std::shared_ptr<RendezvousConnection> connection,
                   DialerOf(address, access)(deadline));
  wire::LeaveRequest request;
  request.set_cluster(cluster);
  request.set_name(self.name);
  request.set_incarnation(self.incarnation);
  wire::LeaveAnswer answer;
  return connection->Ask(request, &answer, deadline);
}

absl::StatusOr<std::vector<WorkerInfo>> ListWorkers(
    const std::string& address, const std::string& cluster,
    milliseconds timeout, const RendezvousAccess& access) {
  return internal::ListWatched(address, cluster, timeout, access, nullptr);
}

absl::StatusOr<std::vector<WorkerInfo>> internal::ListWatched(
    const std::string& address, const std::string& cluster,
    milliseconds timeout, const RendezvousAccess& access,
    const RendezvousConnection::Watch& watch) {
  const auto deadline = system_clock::now() + timeout;
  ASSIGN_OR_RETURN(const auto connection,
                   GrpcConnection::Make(address, access, deadline, watch));
  wire::ListRequest request;
  request.set_cluster(cluster);
  wire::ListAnswer answer;
  RETURN_IF_ERROR(connection->List(request, &answer, deadline, watch));
  std::vector<WorkerInfo> workers;
  for (const wire::Member& member : answer.members()) {
    ASSIGN_OR_RETURN(WorkerInfo worker, FromWire(member));
    workers.push_back(std::move(worker));
  }
  return workers;
}

}  // namespace baton::rpc
