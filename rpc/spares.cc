// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/spares.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rpc/agent.h"

namespace baton::rpc {
namespace {

constexpr char kSpare[] = "spare";

std::vector<WorkerInfo> Others(const Agent& agent, bool spares) {
  std::vector<WorkerInfo> others = agent.workers();
  std::erase_if(others, [&](const WorkerInfo& worker) {
    return worker.name == agent.self().name || IsSpare(worker) != spares;
  });
  return others;
}

}  // namespace

std::string SpareName(int number) { return absl::StrCat(kSpare, number); }

bool IsSpare(const WorkerInfo& worker) {
  absl::string_view number = worker.name;
  return absl::ConsumePrefix(&number, kSpare) && !number.empty() &&
         std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

std::vector<WorkerInfo> Spares(const Agent& agent) {
  return Others(agent, true);
}

std::vector<WorkerInfo> OthersButSpares(const Agent& agent) {
  return Others(agent, false);
}

}  // namespace baton::rpc
