// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace baton::rpc {

// How gRPC is set up on both ends; docs/transport.md says what was measured.
grpc::ChannelArguments DialArguments();
void SetServerArguments(grpc::ServerBuilder& builder);

}  // namespace baton::rpc
