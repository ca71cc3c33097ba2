// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/peer/report_idle.h"

#include <iostream>

#include "absl/strings/str_replace.h"

namespace baton::testing {

void ReportIdle(const rpc::Agent& agent) {
  if (agent.AwaitIdle(std::chrono::seconds(10))) {
    std::cout << "idle" << std::endl;
    return;
  }
  std::cout << "left "
            << absl::StrReplaceAll(agent.GetDebugInfo().ToString(),
                                   {{"\n", " | "}})
            << std::endl;
}

}  // namespace baton::testing
