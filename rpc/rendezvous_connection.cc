// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_client.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"

namespace baton::rpc::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr milliseconds kProbe{200};
// Between two looks at whether connecting was ended, and into etcd.
constexpr milliseconds kLook{50};
// How long etcd is asked at a time, and an address that it has is tried before
// it is asked again.
constexpr milliseconds kAsk{1000}, kTry{500};

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

absl::Status AtRendezvous(const std::string& address,
                          const RendezvousAccess& access,
                          const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", address,
                     ": a server that is none listens there"));
  }
  absl::Status why(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message());
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
  GrpcConnection(std::string address, const RendezvousAccess& access,
                 std::shared_ptr<grpc::Channel> channel)
      : address_(std::move(address)),
        access_(access),
        channel_(std::move(channel)),
        prover_(access.security.token) {}

  absl::Status Ask(const wire::JoinRequest& request, wire::JoinAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Join, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::LeaveRequest& request, wire::LeaveAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Leave, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::RenewRequest& request, wire::RenewAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::Renew, request, answer, deadline, watch);
  }
  absl::Status Ask(const wire::ListRequest& request, wire::ListAnswer* answer,
                   Deadline deadline, const Watch& watch) override {
    return Prove(&Stub::List, request, answer, deadline, watch);
  }

 private:
  using Stub = wire::Rendezvous::Stub;

  template <typename Request, typename Answer>
  absl::Status Prove(grpc::Status (Stub::*call)(grpc::ClientContext*,
                                                const Request&, Answer*),
                     const Request& request, Answer* answer, Deadline deadline,
                     const Watch& watch);

  const std::string address_;
  const RendezvousAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  CallProver prover_;
};

absl::StatusOr<std::shared_ptr<RendezvousConnection>> Connect(
    const std::string& address, const RendezvousAccess& access,
    RendezvousConnection::Deadline deadline,
    const RendezvousConnection::Watch& watch) {
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
  return std::make_shared<GrpcConnection>(address, access, std::move(channel));
}

template <typename Request, typename Answer>
absl::Status GrpcConnection::Prove(
    grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Answer*),
    const Request& request, Answer* answer, Deadline deadline,
    const Watch& watch) {
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

// Connects to the rendezvous of which etcd has the address.
absl::StatusOr<std::shared_ptr<RendezvousConnection>> ConnectToListed(
    Etcd& etcd, const std::string& address, const RendezvousAccess& access,
    RendezvousConnection::Deadline deadline,
    const RendezvousConnection::Watch& watch) {
  const auto listed = etcd.Get(
      kRendezvousKey, std::min(deadline, system_clock::now() + kAsk), watch);
  if (absl::IsNotFound(listed.status())) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the rendezvous at ", address,
                     ": none serves; start baton-rendezvous --etcd=", address));
  }
  RETURN_IF_ERROR(listed.status());
  // Whoever may write into etcd may write anything.
  RETURN_IF_ERROR(Annotate(ParseHostPort(*listed).status(),
                           absl::StrCat("the etcd at ", address)));
  RETURN_IF_ERROR(CheckExposure(
      access.security, "a worker would talk to the rendezvous at", *listed));
  return Connect(*listed, access,
                 std::min(deadline, system_clock::now() + kTry), watch);
}

// `etcd` is made if it is null.
absl::StatusOr<std::shared_ptr<RendezvousConnection>> ConnectByEtcd(
    std::unique_ptr<Etcd>& etcd, const std::string& address,
    const RendezvousAccess& access, RendezvousConnection::Deadline deadline,
    const RendezvousConnection::Watch& watch) {
  if (etcd == nullptr) {
    ASSIGN_OR_RETURN(etcd, Etcd::Make(address, access.security));
  }
  for (;;) {
    auto connection = ConnectToListed(*etcd, address, access, deadline, watch);
    if (connection.ok() || !absl::IsUnavailable(connection.status()) ||
        system_clock::now() + 2 * kLook >= deadline) {
      return connection;
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

RendezvousDialer DialerOf(const std::string& address,
                          const RendezvousAccess& access,
                          RendezvousConnection::Watch watch) {
  // Kept from dial to dial, so that a worker that has lost its rendezvous need
  // not connect to etcd first.
  auto etcd = std::make_shared<std::unique_ptr<Etcd>>();
  return [address, access, watch = std::move(watch),
          etcd = std::move(etcd)](RendezvousConnection::Deadline deadline) {
    return IsEtcd(address)
               ? ConnectByEtcd(*etcd, address, access, deadline, watch)
               : Connect(address, access, deadline, watch);
  };
}

}  // namespace baton::rpc::internal
