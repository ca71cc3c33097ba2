// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/report.h"

#include <cstdio>

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
  ASSIGN_OR_RETURN(const std::string drawn,
                   TellDrawn(WriteCharts(settings.plot, title, measurements)));
  std::printf("%s", drawn.c_str());
  return absl::OkStatus();
}

absl::Status SaveSchedule(const PipelineSettings& settings,
                          const Trainable& model) {
  if (settings.save_schedule.empty() || model.schedule() == nullptr)
    return absl::OkStatus();
  return dist::SaveSchedule(settings.save_schedule, *model.schedule());
}

}  // namespace baton::examples
