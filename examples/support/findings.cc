// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/findings.h"

#include <variant>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "examples/support/charts.h"
#include "tools/command_line.h"
#include "tools/output_file.h"

ABSL_FLAG(std::string, json, "",
          "write a JSON line for each row of the table to this file; - is "
          "stdout");
ABSL_FLAG(std::string, plot, "", "draw charts into this folder");

namespace baton::examples {

absl::Status CheckFindingsFlags() {
  RETURN_IF_ERROR(tools::CheckOutputs(FLAGS_json));
  return tools::CheckOutputFolder(FLAGS_plot);
}

absl::Status Tell(const Findings& findings) {
  RETURN_IF_ERROR(tools::Print(
      absl::StrCat(FormatTable(findings.measurements), findings.further)));
  if (const std::string json = absl::GetFlag(FLAGS_json); !json.empty())
    RETURN_IF_ERROR(WriteJsonLines(json, findings.measurements));
  const std::string folder = absl::GetFlag(FLAGS_plot);
  if (folder.empty() || findings.charts.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string drawn,
                   TellDrawn(DrawCharts(folder, findings.charts)));
  return tools::Print(drawn);
}

std::string FormatShares(const std::vector<Measurement>& measurements,
                         const std::string& name, const std::string& does) {
  std::string lines;
  for (const Measurement& measured : measurements) {
    for (const Detail& detail : measured.details) {
      if (detail.name != name) continue;
      absl::StrAppendFormat(&lines, "%s: %.1f%% of the time %s\n",
                            measured.variant,
                            100 * std::get<double>(detail.value), does);
    }
  }
  return lines;
}

}  // namespace baton::examples
