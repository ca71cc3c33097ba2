// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace baton::examples {

// By which path one stage gives another what it computes ("local", "grpc").
struct StagePath {
  int64_t from = 0;
  int64_t to = 0;
  std::string path;
  std::string why_no_window = {};  // where one was tried
};

// A further figure or circumstance: a field of the JSON line.
struct Detail {
  std::string name;
  std::variant<std::string, double, int64_t, bool, std::vector<double>,
               std::vector<StagePath>>
      value;
};

// Repeated timings of one variant of an experiment.
struct Measurement {
  std::string variant;              // "single", "split", "pipelined split 20"
  int64_t split_size = 0;           // rows of a micro-batch; 0: not pipelined
  int64_t items = 0;                // that one repeat goes through
  std::vector<double> seconds;      // of each repeat
  std::optional<double> loss = {};  // of the last step, where it trains
  std::vector<Detail> details = {};
  std::string item = "images";  // what is counted
  // Its speed-up is over the first of the same name.
  std::string compared = {};
};

struct Summary {
  double median_s = 0;
  double mean_s = 0;
  double std_s = 0;        // of the sample; 0 for one repeat
  double items_per_s = 0;  // by the median
};
// `seconds` must not be empty.
Summary Summarize(const Measurement& measurement);

// A table of all variants, each against the first: what a person reads. It has
// no column for what none of them has: repeats, one to compare with, or a loss.
std::string FormatTable(const std::vector<Measurement>& measurements);

// What part of the rate that a worker has in the variant `alone` each worker
// of the other variants has, as their detail "efficiency". The detail `workers`
// is their number. A line that says so of each; empty where none is `alone`.
std::string NoteEfficiency(std::vector<Measurement>& measurements,
                           const std::string& alone = "single",
                           const std::string& workers = "workers");

// What a measured pipeline has to say of its order, as details. Plain data.
struct PipelineFigures {
  std::string schedule;
  double bubble = 0;            // measured: share of a mean worker's step
  double predicted_bubble = 0;  // by the costs of its instructions
  double held = 0;  // micro-batches whose activations a worker holds at most
};
std::vector<Detail> DetailsOf(const PipelineFigures& figures);

// A line for each measurement that has such figures.
std::string FormatBubbles(const std::vector<Measurement>& measurements);

// The values below which these shares (percent) of all values lie.
inline const std::vector<double> kPercentiles = {50, 75, 90, 95};
// One for each of kPercentiles; zeros for no values.
std::vector<double> PercentilesOf(std::vector<double> values);
// A table of the details of these names, each of which PercentilesOf gave.
std::string FormatPercentiles(const std::vector<Measurement>& measurements,
                              const std::vector<std::string>& names);

// A line for each measurement of several stages: the paths between them.
std::string FormatPaths(const std::vector<Measurement>& measurements);

// One JSON object: variant, split_size, median_s, mean_s, std_s, images_per_s
// (or what is counted), repeats, loss (where it has one), and the details.
std::string ToJsonLine(const Measurement& measurement);

// Writes the lines to `path` at once, or to standard output where it is "-".
absl::Status WriteJsonLines(const std::string& path,
                            const std::vector<Measurement>& measurements);

}  // namespace baton::examples
