// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// The results of a program.
struct Findings {
  std::vector<Measurement> measurements = {};
  std::string further = {};  // lines to print below the table
  // Programs for gnuplot, by name (examples/support/charts.h).
  std::vector<std::pair<std::string, std::string>> charts = {};
};
// Returns InvalidArgument, which names --json or --plot, if Tell could not
// write what the flag asks for. Call it before the work.
absl::Status CheckFindingsFlags();
// Prints the table, writes the lines for --json and draws the charts for
// --plot.
absl::Status Tell(const Findings& findings);

// Formats a line for each measurement with the detail `name`, a share of its
// time: "ddp: 12.3% of the time `does`".
std::string FormatShares(const std::vector<Measurement>& measurements,
                         const std::string& name, const std::string& does);

}  // namespace baton::examples
