// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/agent.h"

namespace baton::testing {

// Returns how many training steps a worker has taken part in, from its table
// "training"; "none" before the first.
inline std::string StepsOf(const rpc::Agent& agent) {
  for (const rpc::View& view : agent.GetDebugInfo().views)
    if (view.name == "training" && !view.rows.empty()) return view.rows[0][0];
  return "none";
}

}  // namespace baton::testing
