// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/support/measurement.h"

namespace baton::examples {

// Draws these charts as PNG and SVG into `folder`, which is made if it does not
// exist:
//   whole_or_split  a bar for each variant that is not pipelined: mean time and
//                   standard deviation; needs two such variants
//   variants        the same, and the fastest pipelined variant
//   split_sizes     time by the images in a micro-batch; needs two sizes
// The gnuplot programs are kept beside them as .gp. Returns the files drawn.
// FailedPrecondition if gnuplot is missing; other errors name the file.
absl::StatusOr<std::vector<std::string>> WriteCharts(
    const std::string& folder, const std::string& title,
    const std::vector<Measurement>& measurements);

// These return a program for gnuplot, to be run in the folder; empty if there
// is too little to compare.
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
// Draws several curves into NAME.png and NAME.svg.
std::string CurvesChart(const std::string& name, const std::string& title,
                        const std::string& x_label, const std::string& y_label,
                        const std::vector<Curve>& curves);
// Draws the losses of all steps, for measurements with the detail "losses".
std::string LossChart(const std::string& title,
                      const std::vector<Measurement>& measurements);

// Draws the charts of these programs, by name, as WriteCharts does.
absl::StatusOr<std::vector<std::string>> DrawCharts(
    const std::string& folder,
    const std::vector<std::pair<std::string, std::string>>& programs);

// Returns a line that names the files drawn or says that gnuplot is missing;
// else the error.
absl::StatusOr<std::string> TellDrawn(
    const absl::StatusOr<std::vector<std::string>>& drawn);

}  // namespace baton::examples
