// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// What a program has found out.
struct Findings {
  std::vector<Measurement> measurements = {};
  std::string further = {};  // lines to stand below the table
  // Programs for gnuplot, by name (examples/support/charts.h).
  std::vector<std::pair<std::string, std::string>> charts = {};
};
// InvalidArgument names --json or --plot where Tell could not write what it
// asks for: for before the work.
absl::Status CheckFindingsFlags();
// Prints the table, writes the lines that --json asks for and draws the charts
// that --plot does.
absl::Status Tell(const Findings& findings);

// A line for each measurement that has the detail `name`, which is a share of
// its time: "ddp: 12.3% of the time `does`".
std::string FormatShares(const std::vector<Measurement>& measurements,
                         const std::string& name, const std::string& does);

}  // namespace baton::examples
