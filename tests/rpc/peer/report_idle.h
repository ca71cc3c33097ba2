// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/agent.h"

namespace baton::testing {

// Writes "idle" once nothing is owned, held or under way, or "left" and what is
// after 10 s: a line for who conducts the process.
void ReportIdle(const rpc::Agent& agent);

}  // namespace baton::testing
