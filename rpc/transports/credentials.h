// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "rpc/security.h"
#include "rpc/transports/address.h"
#include "rpc/worker.h"

// What rpc/security.h means to gRPC. Unix sockets never use TLS: who may enter
// their directory may read the key as well.
namespace baton::rpc {

// InvalidArgument when a worker that listens on `listen`, and tells its peers
// `advertise_host` unless that is empty, would be open to other machines with
// nothing to protect it.
absl::Status CheckWorkerExposure(const Security& security,
                                 const std::string& listen,
                                 const std::string& advertise_host);
// InvalidArgument when `peer`, whose address others told, must not be dialed:
// the address makes no sense, or what is said there would be open to other
// machines with nothing to protect it.
absl::Status CheckPeerExposure(const Security& security, const WorkerInfo& peer,
                               Names names);

// Of a port that listens on `address`.
std::shared_ptr<grpc::ServerCredentials> PortCredentials(
    const Security& security, const std::string& address);

// To `target`, one of DialTargets, where `worker` is expected: with TLS, a
// certificate that is not for that name ends the connection.
std::shared_ptr<grpc::Channel> SecureChannel(const Security& security,
                                             const std::string& target,
                                             const std::string& worker,
                                             grpc::ChannelArguments arguments);

// FailedPrecondition when the call came over TLS with a certificate that is not
// for `worker`.
absl::Status CheckCaller(const grpc::CallbackServerContext& context,
                         const std::string& worker);

// What gRPC says of a connection that failed, without its address, which the
// reader has, and the words around it.
std::string PlainReason(const std::string& text);

// Why a connection to `worker` failed, given what gRPC says, with the remedy
// when the two do not agree on TLS or the token: Unauthenticated when trying
// again is useless, else Unavailable.
absl::Status ExplainFailure(const Security& security, const std::string& worker,
                            const absl::Status& why);

}  // namespace baton::rpc
