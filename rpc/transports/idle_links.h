// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "rpc/transports/link.h"

namespace baton::rpc {

// Waits until all of these links of one host are idle, for at most `timeout`.
void AwaitIdle(LinkHost& host, const std::vector<std::shared_ptr<Link>>& links,
               std::chrono::milliseconds timeout);

}  // namespace baton::rpc
