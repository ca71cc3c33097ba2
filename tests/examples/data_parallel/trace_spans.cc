// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/examples/data_parallel/trace_spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace baton::examples {

std::vector<TracedSpan> SpansOf(const std::string& path) {
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file, nullptr, false);
  EXPECT_FALSE(trace.is_discarded()) << path;
  if (trace.is_discarded()) return {};
  std::map<int, std::string> workers;
  std::map<std::pair<int, int>, std::string> tracks;
  std::vector<TracedSpan> spans;
  for (const auto& event : trace["traceEvents"]) {
    const std::string what = event["name"];
    if (event["ph"] == "M" && what == "process_name")
      workers[event["pid"]] = event["args"]["name"];
    if (event["ph"] == "M" && what == "thread_name")
      tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
  }
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "span") continue;
    const double begin = event["ts"], lasts = event["dur"];
    spans.push_back({.worker = workers[event["pid"]],
                     .track = tracks[{event["pid"], event["tid"]}],
                     .name = event["name"],
                     .begin = begin,
                     .end = begin + lasts});
    spans.back().within =
        trace["otherData"][spans.back().worker].value("clock_within_ns", 0.0) /
        1e3;
  }
  std::stable_sort(
      spans.begin(), spans.end(),
      [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return spans;
}

std::vector<TracedSpan> SpansNamed(const std::vector<TracedSpan>& spans,
                                   const std::string& worker,
                                   const std::string& name) {
  std::vector<TracedSpan> found;
  for (const TracedSpan& span : spans)
    if (span.worker == worker && span.name.rfind(name, 0) == 0)
      found.push_back(span);
  return found;
}

}  // namespace baton::examples
