// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/faults.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/status.h"

namespace baton::bench {
namespace {

using testing::HostNetwork;

Fault Kill() {
  return {"kill", false, [](const Victim& victim) {
            victim.processes.Kill(victim.worker, true);
            victim.processes.Start(victim.worker, 0);
          }};
}

Fault StopFor(int seconds) {
  return {absl::StrCat("stop of ", seconds, " s"), false,
          [seconds](const Victim& victim) {
            victim.processes[victim.worker].Kill(SIGSTOP);
            std::this_thread::sleep_for(std::chrono::seconds(seconds));
            victim.processes[victim.worker].Kill(SIGCONT);
          }};
}

Fault CutFor(const std::string& what, int seconds, HostNetwork::Loss loss) {
  return {absl::StrCat(what, " of ", seconds, " s"), true,
          [seconds, loss](const Victim& victim) {
            BATON_CHECK(victim.network->Cut(victim.host, loss).ok());
            std::this_thread::sleep_for(std::chrono::seconds(seconds));
            BATON_CHECK(victim.network->Mend(victim.host).ok());
          }};
}

absl::StatusOr<Fault> FaultOf(const std::string& name) {
  if (name == "kill") return Kill();
  absl::string_view rest = name;
  int seconds = 0;
  const auto lasts = [&](absl::string_view what) {
    return absl::ConsumePrefix(&rest, what) &&
           absl::SimpleAtoi(rest, &seconds) && seconds > 0;
  };
  if (lasts("stop")) return StopFor(seconds);
  if (lasts("partition"))
    return CutFor("partition", seconds, HostNetwork::Loss::kBothWays);
  if (lasts("deaf"))
    return CutFor("deafness", seconds, HostNetwork::Loss::kToHost);
  return absl::InvalidArgumentError(absl::StrCat(
      "no such fault: ", name, "; kill, stopN, partitionN and deafN are"));
}

}  // namespace

absl::StatusOr<std::vector<Fault>> FaultsOf(const FaultNames& names) {
  if (names.empty()) return absl::InvalidArgumentError("no faults");
  std::vector<Fault> faults;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(faults.emplace_back(), FaultOf(name));
  }
  return faults;
}

bool NeedNetwork(const std::vector<Fault>& faults) {
  return std::any_of(faults.begin(), faults.end(),
                     [](const Fault& fault) { return fault.needs_network; });
}

}  // namespace baton::bench
