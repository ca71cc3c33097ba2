// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/step_threads.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/parallel.h"
#include "rpc/channels/segment.h"

namespace baton::dist {
namespace {

// More threads do not step more rows (docs/performance/parameter_server.md).
constexpr int kMostStepThreads = 16;

// Returns the cores that this process may use, or nothing on machines of more
// than 1,024. Not hardware_concurrency(), which reads a file to count all cores
// of the machine.
std::optional<cpu_set_t> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return std::nullopt;
  return set;
}

}  // namespace

std::string CoresHere() {
  std::string name = absl::StrCat(rpc::BootId().value_or(""), ":");
  const auto allowed = AllowedCores();
  for (int core = 0; allowed.has_value() && core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &*allowed)) absl::StrAppend(&name, core, ",");
  return name;
}

int StepThreads(const ServerOptions& options, const StepPlace& place) {
  if (options.compute_threads > 0) return options.compute_threads;
  const int share = place.cores / 2 / std::max(1, place.servers);
  return std::max(place.threads, std::min(share, kMostStepThreads));
}

int StepThreadsHere(const ServerOptions& options, int servers) {
  const auto allowed = AllowedCores();
  const auto all = static_cast<int>(std::thread::hardware_concurrency());
  return StepThreads(options, {.threads = ComputeThreads(),
                               .cores = allowed ? CPU_COUNT(&*allowed) : all,
                               .servers = servers});
}

namespace server_calls {
std::string Cores() { return CoresHere(); }
}  // namespace server_calls

}  // namespace baton::dist
