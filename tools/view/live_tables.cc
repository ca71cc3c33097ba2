// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/live_tables.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace baton::tools {
namespace {

using Unit = rpc::View::Unit;

struct Totals {
  uint64_t sent = 0, received = 0;
};

Totals TotalsOf(const rpc::DebugInfo& info) {
  Totals totals;
  for (const rpc::MethodStats& method : info.methods) {
    totals.sent += method.bytes_sent;
    totals.received += method.bytes_received;
  }
  return totals;
}

// Returns a worker's training steps (dist::StepCount); 0 if it does not train.
uint64_t StepsOf(const rpc::DebugInfo& info) {
  for (const rpc::View& view : info.views) {
    uint64_t steps = 0;
    if (view.name == "training" && view.rows.size() == 1 &&
        view.rows[0].size() == 1 && absl::SimpleAtoi(view.rows[0][0], &steps))
      return steps;
  }
  return 0;
}

// A total can shrink, because a peer's statistics are dropped with the peer.
double PerSecond(uint64_t now, uint64_t before, double seconds) {
  return now < before ? 0 : static_cast<double>(now - before) / seconds;
}

}  // namespace

rpc::View LiveTables::Rates(const std::vector<WorkerReport>& reports) const {
  rpc::View table{.name = "a_second",
                  .columns = {{"worker", Unit::kText},
                              {"steps", Unit::kCount},
                              {"served", Unit::kCount},
                              {"bytes_sent", Unit::kBytes},
                              {"bytes_received", Unit::kBytes}}};
  for (const WorkerReport& report : reports) {
    const auto before = last_.find(report.worker.name);
    if (!report.status.ok() || before == last_.end() ||
        before->second.worker.incarnation != report.worker.incarnation ||
        report.info.uptime_ms <= before->second.info.uptime_ms)
      continue;
    const rpc::DebugInfo& then = before->second.info;
    const auto seconds =
        static_cast<double>(report.info.uptime_ms - then.uptime_ms) / 1e3;
    const Totals now = TotalsOf(report.info), past = TotalsOf(then);
    const uint64_t steps = StepsOf(report.info);
    table.rows.push_back(
        {report.worker.name,
         steps == 0 ? ""
                    : absl::StrFormat("%.1f",
                                      PerSecond(steps, StepsOf(then), seconds)),
         absl::StrFormat("%.1f", PerSecond(report.info.calls_served,
                                           then.calls_served, seconds)),
         absl::StrFormat("%.0f", PerSecond(now.sent, past.sent, seconds)),
         absl::StrFormat("%.0f",
                         PerSecond(now.received, past.received, seconds))});
  }
  return table;
}

std::vector<rpc::View> LiveTables::Next(const std::string& command,
                                        std::vector<WorkerReport> reports) {
  for (const auto& last : last_) {
    const bool here = std::any_of(
        reports.begin(), reports.end(),
        [&](const auto& report) { return report.worker.name == last.first; });
    if (here) continue;
    reports.push_back({.worker = last.second.worker,
                       .status = absl::NotFoundError("it has left the cluster"),
                       .gone = true});
  }
  std::vector<rpc::View> tables = TablesOf(command, reports);
  if (command == "status") tables.push_back(Rates(reports));
  for (WorkerReport& report : reports) {
    if (!report.status.ok()) continue;
    const std::string name = report.worker.name;
    last_[name] = std::move(report);
  }
  return tables;
}

}  // namespace baton::tools
