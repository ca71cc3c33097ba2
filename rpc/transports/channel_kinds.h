// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

// The wakeup of this process; null where small messages travel by gRPC alone,
// by the options or by BATON_MESSAGE_RING=off in the environment.
std::shared_ptr<FutexEvent> MakeFutexEvent(const GrpcOptions& options);

// The channels that a transport of these options offers its peers. `fd_path` is
// of a socket in a directory that only this user may enter. FailedPrecondition
// for a device that is not there.
absl::StatusOr<ChannelKinds> MakeChannelKinds(
    const GrpcOptions& options, const std::string& fd_path,
    std::shared_ptr<FutexEvent> wakeup);

}  // namespace baton::rpc
