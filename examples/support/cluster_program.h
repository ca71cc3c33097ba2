// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "examples/support/measurement.h"
#include "rpc/agent.h"
#include "rpc/registry.h"

namespace baton::examples {

// Main of a program that is all processes of its cluster: joins by the flags,
// with distributed autograd, which it adds to the registry, and collectives.
// The one named "trainer" runs `check`, before anybody hears of it, then
// `lead`; the others serve until a signal ends them. What the two throw becomes
// a status.
absl::Status RunInCluster(rpc::Registry registry,
                          const std::function<absl::Status()>& check,
                          const std::function<absl::Status(rpc::Agent&)>& lead);

// What such a program has found out.
struct Findings {
  std::vector<Measurement> measurements = {};
  std::string further = {};  // lines to stand below the table
  // Programs for gnuplot, by name (examples/support/charts.h).
  std::vector<std::pair<std::string, std::string>> charts = {};
};
// Prints the table, writes the lines that --json asks for and draws the charts
// that --plot does.
absl::Status Tell(const Findings& findings);

}  // namespace baton::examples
