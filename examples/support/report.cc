// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/report.h"

#include <cstdio>

#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/support/charts.h"

namespace baton::examples {

absl::Status Report(const PipelineSettings& settings, const std::string& title,
                    const std::vector<Measurement>& measurements) {
  std::printf("\n%s\n%s%s%s", title.c_str(), FormatTable(measurements).c_str(),
              FormatBubbles(measurements).c_str(),
              FormatPaths(measurements).c_str());
  std::fflush(stdout);
  if (!settings.json.empty()) {
    RETURN_IF_ERROR(WriteJsonLines(settings.json, measurements));
  }
  if (settings.plot.empty()) return absl::OkStatus();
  const auto drawn = WriteCharts(settings.plot, title, measurements);
  if (drawn.ok()) {
    std::printf("charts: %s\n", absl::StrJoin(*drawn, " ").c_str());
  } else if (absl::IsFailedPrecondition(drawn.status())) {
    std::printf("%s\n", std::string(drawn.status().message()).c_str());
  } else {
    return drawn.status();
  }
  return absl::OkStatus();
}

absl::Status SaveSchedule(const PipelineSettings& settings,
                          const Trainable& model) {
  if (settings.save_schedule.empty() || model.schedule() == nullptr)
    return absl::OkStatus();
  return dist::SaveSchedule(settings.save_schedule, *model.schedule());
}

}  // namespace baton::examples
