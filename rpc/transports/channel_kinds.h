// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/transports/grpc.h"
#include "rpc/transports/tensor_channels.h"

namespace baton::rpc {

// Returns the futex event of this process, or null if small messages use only
// gRPC, because of the options or of BATON_MESSAGE_RING=off in the environment.
std::shared_ptr<FutexEvent> MakeFutexEvent(const GrpcOptions& options);

// Returns the channels that a transport with these options offers its peers.
// `fd_path` is the path of a socket in a directory that only this user may
// enter. FailedPrecondition if the device does not exist.
absl::StatusOr<ChannelKinds> MakeChannelKinds(
    const GrpcOptions& options, const std::string& fd_path,
    std::shared_ptr<FutexEvent> wakeup);

// Returns what this process offers for each kind in a hello, or why it cannot.
ChannelOffers OffersOf(const ChannelKinds& kinds);

}  // namespace baton::rpc
