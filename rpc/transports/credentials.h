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

// Applies rpc/security.h to gRPC. Unix sockets never use TLS, because whoever
// may enter their directory can read the key as well.
namespace baton::rpc {

// Returns InvalidArgument if a worker that listens on `listen`, and tells its
// peers `advertise_host` unless that is empty, would be exposed to other
// machines without protection.
absl::Status CheckWorkerExposure(const Security& security,
                                 const std::string& listen,
                                 const std::string& advertise_host);
// Returns InvalidArgument if `peer`, whose address came from others, must not
// be dialed: because the address is invalid, or because what is sent there
// would be exposed to other machines without protection.
absl::Status CheckPeerExposure(const Security& security, const WorkerInfo& peer,
                               Names names);

// The credentials of a port that listens on `address`.
std::shared_ptr<grpc::ServerCredentials> PortCredentials(
    const Security& security, const std::string& address);

// Opens a channel to `target`, one of DialTargets, where `worker` is expected.
// With TLS, a certificate that is not for that name ends the connection.
std::shared_ptr<grpc::Channel> SecureChannel(const Security& security,
                                             const std::string& target,
                                             const std::string& worker,
                                             grpc::ChannelArguments arguments);

// Returns FailedPrecondition if the call came over TLS with a certificate that
// is not for `worker`.
absl::Status CheckCaller(const grpc::CallbackServerContext& context,
                         const std::string& worker);

// Returns gRPC's reason why a connection failed, without the address, which the
// reader knows, and without the words around it.
std::string PlainReason(const std::string& text);

// Explains gRPC's error on a connection to `worker`, with a remedy if the two
// ends disagree on TLS or the token. Returns Unauthenticated if trying again is
// useless, otherwise Unavailable.
absl::Status ExplainFailure(const Security& security, const std::string& worker,
                            const absl::Status& why);

}  // namespace baton::rpc
