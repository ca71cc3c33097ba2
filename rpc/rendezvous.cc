// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/functional/function_ref.h"
#include "core/status.h"
#include "rpc/call_proof.h"
#include "rpc/channels/accepting.h"
#include "rpc/rendezvous.grpc.pb.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/rendezvous_handlers.h"
#include "rpc/transports/acceptor.h"
#include "rpc/transports/address.h"
#include "rpc/transports/credentials.h"
#include "rpc/transports/grpc_settings.h"

namespace baton::rpc {
namespace {

using internal::RendezvousHandlers;
using std::chrono::milliseconds;

// The time a new connection has until its worker must be authenticated.
constexpr milliseconds kAuthenticationTime{20'000};

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

// A call that may wait for its answer. gRPC owns it until OnDone.
class WaitingCall final : public grpc::ServerUnaryReactor {
 public:
  using Begin = absl::FunctionRef<std::unique_ptr<RendezvousHandlers::Call>(
      RendezvousHandlers::Done done)>;

  explicit WaitingCall(Begin begin)
      : call_(begin(
            [this](const absl::Status& status) { Finish(ToGrpc(status)); })) {}
  void OnCancel() override {
    if (call_ != nullptr) call_->Cancel();
  }
  void OnDone() override { delete this; }

 private:
  const std::unique_ptr<RendezvousHandlers::Call> call_;  // null: already done
};

class Service final : public wire::Rendezvous::CallbackService {
 public:
  Service(std::shared_ptr<RendezvousGroups> groups, const Security& security)
      : handlers_(std::move(groups)), guard_(security.token) {}

  void OnLetIn(std::function<void(const std::string&)> let_in) {
    let_in_ = std::move(let_in);
  }

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const wire::JoinRequest* request,
                                 wire::JoinAnswer* answer) override {
    const absl::Status known =
        Check(*context, *request, request->self().name());
    if (!known.ok()) return Answer(*context, known);
    let_in_(context->peer());
    return new WaitingCall([&](RendezvousHandlers::Done done) {
      return handlers_.Join(*request, answer, std::move(done));
    });
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const wire::LeaveRequest* request,
                                  wire::LeaveAnswer*) override {
    absl::Status status = Check(*context, *request, request->name());
    if (status.ok()) status = handlers_.Leave(*request);
    return Answer(*context, status);
  }

  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const wire::RenewRequest* request,
                                  wire::RenewAnswer* answer) override {
    const absl::Status known = Check(*context, *request, request->name());
    if (!known.ok()) return Answer(*context, known);
    let_in_(context->peer());
    return new WaitingCall([&](RendezvousHandlers::Done done) {
      return handlers_.Renew(*request, answer, std::move(done));
    });
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const wire::ListRequest* request,
                                 wire::ListAnswer* answer) override {
    // Anybody with the cluster's token may list, under any name.
    absl::Status status = CheckProof(*context, *request);
    if (status.ok()) status = handlers_.List(*request, answer);
    return Answer(*context, status);
  }

 private:
  // Checks the token and that the caller is `worker`: a worker may only make
  // requests for itself.
  absl::Status Check(grpc::CallbackServerContext& context,
                     const google::protobuf::MessageLite& request,
                     const std::string& worker) {
    RETURN_IF_ERROR(CheckProof(context, request));
    return CheckCaller(context, worker);
  }
  absl::Status CheckProof(grpc::CallbackServerContext& context,
                          const google::protobuf::MessageLite& request) {
    const auto& metadata = context.client_metadata();
    const auto shown = metadata.find(internal::kProofKey);
    std::string answer;
    absl::Status status = guard_.Check(
        shown == metadata.end()
            ? ""
            : std::string(shown->second.data(), shown->second.size()),
        internal::Asked(request), internal::CallGuard::Clock::now(), &answer);
    if (!answer.empty())
      context.AddTrailingMetadata(internal::kProofKey, answer);
    return status;
  }
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

  RendezvousHandlers handlers_;
  std::function<void(const std::string&)> let_in_ = [](const std::string&) {};
  internal::CallGuard guard_;
};

class OwnServer final : public RendezvousServer {
 public:
  OwnServer(const Security& security, int max_members)
      : security_(security), service_(security, max_members) {}
  ~OwnServer() override {
    service_.Close();
    acceptor_->Stop();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& listen) {
    HostPort address;
    ASSIGN_OR_RETURN(address, ParseHostPort(listen));
    RETURN_IF_ERROR(CheckListen(listen));
    RETURN_IF_ERROR(
        CheckExposure(security_, "the rendezvous would listen on", listen));
    grpc::ServerBuilder builder;
    SetServerArguments(builder);
    RaiseDescriptorLimit();
    ASSIGN_OR_RETURN(address.port,
                     acceptor_->Listen(builder, listen, security_));
    service_.OnLetIn(
        [this](const std::string& peer) { acceptor_->LetIn(peer); });
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr)
      return ListenFailure(listen, "gRPC makes no server");
    address_ = ToString(address);
    return acceptor_->Start();
  }
  std::string address() const override { return address_; }
  void StrikeOff(const std::string& name, const std::string& why) override {
    service_.StrikeOff(name, why);
  }

 private:
  const Security security_;
  RendezvousService service_;
  const std::shared_ptr<Acceptor> acceptor_ =
      std::make_shared<Acceptor>(kAuthenticationTime);
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

RendezvousService::RendezvousService(const Security& security, int max_members)
    : groups_(std::make_shared<RendezvousGroups>(max_members)),
      service_(std::make_unique<Service>(groups_, security)) {}

RendezvousService::~RendezvousService() { Close(); }

void RendezvousService::OnLetIn(
    std::function<void(const std::string& peer)> let_in) {
  static_cast<Service&>(*service_).OnLetIn(std::move(let_in));
}

void RendezvousService::StrikeOff(const std::string& name,
                                  const std::string& why) {
  groups_->StrikeOff(name, why);
}

void RendezvousService::Close() { groups_->Close(); }

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Make(
    const std::string& listen, const Security& security, int max_members) {
  auto server = std::make_unique<OwnServer>(security, max_members);
  RETURN_IF_ERROR(server->Listen(listen));
  return server;
}

}  // namespace baton::rpc
