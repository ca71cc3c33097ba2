// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// Draws, into `folder` (made where it is missing), as PNG and SVG:
//   whole_or_split  a bar for each variant that is not pipelined: mean time,
//                   and its deviation; from two such variants on
//   variants        the same, with the fastest pipelined one beside them
//   split_sizes     time over images in a micro-batch; from two sizes on
// The gnuplot programs stay beside them as .gp. Gives the files drawn.
// FailedPrecondition where gnuplot is missing; errors name the file otherwise.
absl::StatusOr<std::vector<std::string>> WriteCharts(
    const std::string& folder, const std::string& title,
    const std::vector<Measurement>& measurements);

// The programs, for gnuplot to run in the folder. Empty where there is too
// little to compare.
std::string WholeOrSplitChart(const std::string& title,
                              const std::vector<Measurement>& measurements);
std::string VariantsChart(const std::string& title,
                          const std::vector<Measurement>& measurements);
std::string SplitSizesChart(const std::string& title,
                            const std::vector<Measurement>& measurements);

// A line of a chart; x and y are equally long.
struct Curve {
  std::string name;
  std::vector<double> x = {};
  std::vector<double> y = {};
};
// Several in one chart, drawn into NAME.png and NAME.svg.
std::string CurvesChart(const std::string& name, const std::string& title,
                        const std::string& x_label, const std::string& y_label,
                        const std::vector<Curve>& curves);
// "loss": the losses of all steps, of those that have the detail "losses".
std::string LossChart(const std::string& title,
                      const std::vector<Measurement>& measurements);

// Draws what the programs, each by its name, say, as WriteCharts does.
absl::StatusOr<std::vector<std::string>> DrawCharts(
    const std::string& folder,
    const std::vector<std::pair<std::string, std::string>>& programs);

// A line that names what was drawn, or says that gnuplot is missing; any other
// error.
absl::StatusOr<std::string> TellDrawn(
    const absl::StatusOr<std::vector<std::string>>& drawn);

}  // namespace baton::examples
