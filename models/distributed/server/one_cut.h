// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "core/future.h"
#include "models/distributed/server/shard_calls.h"
#include "models/distributed/server/shard_state.h"
#include "rpc/agent.h"

namespace baton::dist {

// Whether a push that is in one of the replies is in all of them.
bool AreAtOneCut(const std::vector<ExchangeReply>& replies);

// Pulls from all shards at one cut, by one request for each shard, after the
// replies `seen` have shown that plain pulls met pushes on their way. Returns
// Aborted, which names the shards' versions, if there is none by the deadline.
Future<std::vector<ExchangeReply>> PullAtOneCut(
    rpc::Agent& agent, std::shared_ptr<ShardCalls> calls,
    std::vector<ExchangeRequest> requests, std::vector<ExchangeReply> seen,
    ShardCalls::Clock::time_point deadline);

}  // namespace baton::dist
