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

// The path of a link between two stages, such as "local" or "grpc".
struct StagePath {
  int64_t from = 0;
  int64_t to = 0;
  std::string path;
  std::string why_no_window = {};  // if a window was tried
};

// An additional figure, which becomes a field of the JSON line.
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
  int64_t items = 0;                // that one repeat processes
  std::vector<double> seconds;      // of each repeat
  std::optional<double> loss = {};  // of the last step, if the variant trains
  std::vector<Detail> details = {};
  std::string item = "images";  // what is counted
  // The speed-up is relative to the first measurement with the same value.
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

// Returns a table of all variants, each compared with the first, for people.
// Leaves out columns that would be empty: repeats, speed-up, loss.
std::string FormatTable(const std::vector<Measurement>& measurements);

// Adds the detail "efficiency" to the other variants: a worker's rate relative
// to a worker's rate in the variant `alone`. The detail `workers` has a
// variant's number of workers. Returns a line for each of them; empty if there
// is no variant `alone`.
std::string NoteEfficiency(std::vector<Measurement>& measurements,
                           const std::string& alone = "single",
                           const std::string& workers = "workers");

// The figures of a measured pipeline's schedule. Plain data.
struct PipelineFigures {
  std::string schedule;
  double bubble = 0;  // measured: the mean worker's idle share of a step
  double predicted_bubble = 0;  // from the costs of its instructions
  double held = 0;  // the most micro-batches whose activations a worker holds
};
std::vector<Detail> DetailsOf(const PipelineFigures& figures);

// Formats a line for each measurement with such figures.
std::string FormatBubbles(const std::vector<Measurement>& measurements);

// The percentiles that PercentilesOf returns.
inline const std::vector<double> kPercentiles = {50, 75, 90, 95};
// Returns one value for each of kPercentiles; zeros if there are no values.
std::vector<double> PercentilesOf(std::vector<double> values);
// Formats a table of these details, each a result of PercentilesOf.
std::string FormatPercentiles(const std::vector<Measurement>& measurements,
                              const std::vector<std::string>& names);

// Formats a line with the paths between stages for each measurement of several
// stages.
std::string FormatPaths(const std::vector<Measurement>& measurements);

// Returns a JSON object: variant, split_size, median_s, mean_s, std_s,
// images_per_s (named after `item`), repeats, loss (if there is one), and the
// details.
std::string ToJsonLine(const Measurement& measurement);

// Writes the lines to the file `path` in one piece, or to standard output for
// "-".
absl::Status WriteJsonLines(const std::string& path,
                            const std::vector<Measurement>& measurements);

}  // namespace baton::examples
