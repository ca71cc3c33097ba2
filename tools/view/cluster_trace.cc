// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/view/cluster_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/introspection.h"
#include "tools/output_file.h"

namespace baton::tools {
namespace {

using rpc::Introspection;
using rpc::Tracer;

// Enough readings that one of them meets two idle machines.
constexpr int kClockReadings = 20;

}  // namespace

ClusterTrace::ClusterTrace(rpc::Agent& agent,
                           const std::vector<rpc::WorkerInfo>& workers)
    : agent_(agent) {
  for (const rpc::WorkerInfo& worker : workers)
    workers_.push_back({.info = worker});
}

void ClusterTrace::CompareClocks() {
  for (Worker& worker : workers_) {
    // This process's own clock needs no comparison.
    const bool self = worker.info.name == agent_.self().name;
    for (int i = 0; i < kClockReadings && worker.there && !self; ++i) {
      const int64_t asked = Tracer::Now();
      const auto read =
          agent_.Async<&Introspection::Clock>(worker.info.name).Await(kNoLimit);
      if (!read.ok()) {
        LogWarning("not in the trace: ", read.status().ToString());
        worker.there = false;
        break;
      }
      worker.readings.push_back({asked, *read, Tracer::Now()});
    }
  }
}

void ClusterTrace::Start(std::chrono::milliseconds longest, int64_t limit) {
  CompareClocks();
  std::vector<Future<void>> started;
  for (const Worker& worker : workers_) {
    if (!worker.there) continue;
    started.push_back(agent_.Async<&Introspection::StartTrace>(worker.info.name,
                                                               limit, longest));
  }
  for (const Future<void>& future : started) {
    const absl::Status status = future.Await(kNoLimit);
    if (!status.ok()) LogWarning("not traced: ", status.ToString());
  }
}

std::vector<WorkerTrace> ClusterTrace::Finish() {
  std::vector<std::pair<Worker*, Future<rpc::TraceLog>>> taken;
  for (Worker& worker : workers_) {
    if (!worker.there) continue;
    taken.emplace_back(
        &worker, agent_.Async<&Introspection::TakeTrace>(worker.info.name));
  }
  std::vector<WorkerTrace> traces;
  std::vector<Worker*> of;
  for (auto& [worker, future] : taken) {
    auto log = future.Await(kNoLimit);
    if (!log.ok()) {
      LogWarning("not in the trace: ", log.status().ToString());
      worker->there = false;
      continue;
    }
    if (log->dropped > 0) {
      LogWarning("worker ", worker->info.name, " left ", log->dropped,
                 " events out of its trace: trace a shorter time");
    }
    for (const std::string& note : log->notes)
      LogInfo("worker ", worker->info.name, ": ", note);
    traces.push_back({.worker = worker->info, .log = *std::move(log)});
    of.push_back(worker);
  }
  CompareClocks();
  for (size_t i = 0; i < traces.size(); ++i)
    traces[i].clock = OffsetFrom(of[i]->readings);
  CorrectByMessages(traces);
  return traces;
}

absl::Status WriteTraceOf(rpc::Agent& agent, const std::string& path,
                          const std::function<absl::Status()>& work) {
  ClusterTrace trace(agent, agent.workers());
  trace.Start(std::chrono::minutes(10));
  RETURN_IF_ERROR(work());
  return WriteOutput(path, MergedTrace(trace.Finish()));
}

}  // namespace baton::tools
