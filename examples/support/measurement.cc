// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/measurement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "tools/output_file.h"

namespace baton::examples {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Summary Summarize(const Measurement& measurement) {
  const std::vector<double>& seconds = measurement.seconds;
  BATON_CHECK(!seconds.empty());
  const auto count = static_cast<double>(seconds.size());
  Summary summary;
  summary.median_s = Median(seconds);
  summary.mean_s = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  double squares = 0;
  for (double value : seconds) {
    squares += (value - summary.mean_s) * (value - summary.mean_s);
  }
  if (seconds.size() > 1) summary.std_s = std::sqrt(squares / (count - 1));
  summary.items_per_s =
      static_cast<double>(measurement.items) / summary.median_s;
  return summary;
}

std::string FormatTable(const std::vector<Measurement>& measurements) {
  size_t width = 7;
  bool repeated = false, trained = false;
  std::map<std::string, double> first;  // rates, by Measurement::compared
  for (const Measurement& m : measurements) {
    width = std::max(width, m.variant.size());
    repeated = repeated || m.seconds.size() > 1;
    trained = trained || m.loss.has_value();
    first.emplace(m.compared, Summarize(m).items_per_s);
  }
  const bool compares = first.size() < measurements.size();
  const std::string rate =
      absl::StrCat(measurements.empty() ? "" : measurements[0].item, "/s");
  std::string table = absl::StrFormat("%-*s  %9s", width, "variant",
                                      repeated ? "median s" : "seconds");
  if (repeated) absl::StrAppendFormat(&table, "  %9s  %8s", "mean s", "std s");
  absl::StrAppendFormat(&table, "  %9s", rate);
  if (compares) absl::StrAppendFormat(&table, "  %8s", "speed-up");
  if (trained) absl::StrAppendFormat(&table, "  %9s", "loss");
  table += "\n";
  for (const Measurement& m : measurements) {
    const Summary s = Summarize(m);
    absl::StrAppendFormat(&table, "%-*s  %9.3f", width, m.variant, s.median_s);
    if (repeated)
      absl::StrAppendFormat(&table, "  %9.3f  %8.3f", s.mean_s, s.std_s);
    absl::StrAppendFormat(&table, "  %9.2f", s.items_per_s);
    if (compares) {
      absl::StrAppendFormat(&table, "  %7.2fx",
                            s.items_per_s / first[m.compared]);
    }
    if (trained) {
      absl::StrAppendFormat(&table, "  %9s",
                            m.loss ? absl::StrFormat("%.5f", *m.loss) : "-");
    }
    table += "\n";
  }
  return table;
}

std::string NoteEfficiency(std::vector<Measurement>& measurements,
                           const std::string& alone,
                           const std::string& workers) {
  const auto rate_of_one = [&](const Measurement& measured) {
    double rate = Summarize(measured).items_per_s;
    for (const Detail& detail : measured.details)
      if (detail.name == workers)
        rate /= static_cast<double>(std::get<int64_t>(detail.value));
    return rate;
  };
  double first = 0;
  for (const Measurement& measured : measurements)
    if (measured.variant == alone) first = rate_of_one(measured);
  std::string text;
  for (Measurement& measured : measurements) {
    if (first == 0 || measured.variant == alone) continue;
    const double efficiency = rate_of_one(measured) / first;
    measured.details.push_back({"efficiency", efficiency});
    absl::StrAppendFormat(&text, "%s: scaling efficiency: %.3f\n",
                          measured.variant, efficiency);
  }
  return text;
}

std::vector<Detail> DetailsOf(const PipelineFigures& figures) {
  return {{"schedule", figures.schedule},
          {"bubble", figures.bubble},
          {"predicted_bubble", figures.predicted_bubble},
          {"held", figures.held}};
}

std::string FormatBubbles(const std::vector<Measurement>& measurements) {
  std::string lines;
  for (const Measurement& m : measurements) {
    std::map<std::string, decltype(Detail::value)> all;
    for (const Detail& detail : m.details) all[detail.name] = detail.value;
    if (all.count("bubble") == 0) continue;
    absl::StrAppendFormat(
        &lines,
        "%s: schedule %s, bubble %.1f%% measured, %.1f%% predicted; holds %g "
        "micro-batches\n",
        m.variant, std::get<std::string>(all["schedule"]),
        100 * std::get<double>(all["bubble"]),
        100 * std::get<double>(all["predicted_bubble"]),
        std::get<double>(all["held"]));
  }
  return lines;
}

std::vector<double> PercentilesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> found;
  for (const double percent : kPercentiles) {
    const auto place =
        static_cast<size_t>(percent / 100 * static_cast<double>(values.size()));
    found.push_back(
        values.empty() ? 0 : values[std::min(place, values.size() - 1)]);
  }
  return found;
}

std::string FormatPercentiles(const std::vector<Measurement>& measurements,
                              const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, const Detail*>> found;
  size_t width = 0;
  for (const Measurement& m : measurements) {
    for (const Detail& detail : m.details) {
      if (std::find(names.begin(), names.end(), detail.name) == names.end())
        continue;
      found.emplace_back(absl::StrCat(m.variant, " ", detail.name), &detail);
      width = std::max(width, found.back().first.size());
    }
  }
  std::string table = absl::StrFormat("%-*s", width, "");
  for (const double percent : kPercentiles)
    absl::StrAppendFormat(&table, "  %9s", absl::StrCat("p", percent));
  for (const auto& [name, detail] : found) {
    absl::StrAppendFormat(&table, "\n%-*s", width, name);
    for (const double value : std::get<std::vector<double>>(detail->value))
      absl::StrAppendFormat(&table, "  %9.1f", value);
  }
  return table + "\n";
}

std::string FormatPaths(const std::vector<Measurement>& measurements) {
  std::string lines;
  for (const Measurement& m : measurements) {
    for (const Detail& detail : m.details) {
      const auto* paths = std::get_if<std::vector<StagePath>>(&detail.value);
      if (paths == nullptr || paths->empty()) continue;
      const auto format = [](std::string* text, const StagePath& link) {
        absl::StrAppend(text, "stage ", link.from, " to ", link.to, " ",
                        link.path);
      };
      absl::StrAppend(&lines, m.variant, ": ",
                      absl::StrJoin(*paths, ", ", format), "\n");
    }
  }
  return lines;
}

// For the JSON library, which finds it by its name.
// NOLINTNEXTLINE(readability-identifier-naming)
void to_json(nlohmann::ordered_json& json, const StagePath& link) {
  json = {{"from", link.from}, {"to", link.to}, {"path", link.path}};
  if (!link.why_no_window.empty()) json["why_no_window"] = link.why_no_window;
}

std::string ToJsonLine(const Measurement& measurement) {
  const Summary s = Summarize(measurement);
  nlohmann::ordered_json line = {
      {"variant", measurement.variant},
      {"split_size", measurement.split_size},
      {"median_s", s.median_s},
      {"mean_s", s.mean_s},
      {"std_s", s.std_s},
      {absl::StrCat(measurement.item, "_per_s"), s.items_per_s},
      {"repeats", measurement.seconds.size()},
  };
  if (measurement.loss) line["loss"] = *measurement.loss;
  for (const Detail& detail : measurement.details) {
    std::visit([&](const auto& value) { line[detail.name] = value; },
               detail.value);
  }
  return line.dump();
}

absl::Status WriteJsonLines(const std::string& path,
                            const std::vector<Measurement>& measurements) {
  std::string text;
  for (const Measurement& m : measurements) {
    absl::StrAppend(&text, ToJsonLine(m), "\n");
  }
  return tools::WriteOutput(path, text);
}

}  // namespace baton::examples
