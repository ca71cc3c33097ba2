// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Works a cluster of processes for long and looks whether they grow:
//   rpc_soak [--calls=200000] [--rrefs=20000] [--rounds=40] [--workers=3]
// The load (soak_load.h) is cut into rounds. After each one, when nothing is
// under way any more, the memory and the descriptors of every process are read;
// the first quarter of the rounds is for warming up. Of the others, the last
// third must not hold more than the first. Writes a line of JSON for each
// process and one for all; ends with 0 if all went well and nothing grew.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/rendezvous.h"
#include "tests/support/child_process.h"
#include "tests/support/process_usage.h"
#include "tests/support/program_path.h"

ABSL_FLAG(int, calls, 200'000, "calls, of all workers together");
ABSL_FLAG(int, rrefs, 20'000, "RRefs made, shared, fetched and dropped");
ABSL_FLAG(int, rounds, 40, "into which they are cut; 8 at least");
ABSL_FLAG(int, workers, 3, "processes; 2 at least");
ABSL_FLAG(uint64_t, seed, 1, "of the load");
ABSL_FLAG(int64_t, max_growth_kb, 1024,
          "how much more memory a process may hold at the end");

namespace baton::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{5};  // for one round

struct Process {
  std::string name;
  std::unique_ptr<ChildProcess> child;  // null: this one
  std::vector<ProcessUsage> usages = {};

  pid_t pid() const { return child == nullptr ? getpid() : child->pid(); }
};

// What a process held after some rounds: the mean, and the most.
struct Held {
  int64_t kb = 0;
  int descriptors = 0;
};

Held MeanOf(const std::vector<ProcessUsage>& usages, size_t begin, size_t end) {
  Held held;
  for (size_t i = begin; i < end; ++i) {
    held.kb += usages[i].resident_kb;
    held.descriptors = std::max(held.descriptors, usages[i].descriptors);
  }
  held.kb /= static_cast<int64_t>(end - begin);
  return held;
}

class Soak {
 public:
  explicit Soak(const std::string& rendezvous) {
    const int workers = absl::GetFlag(FLAGS_workers);
    for (int i = 0; i < workers; ++i) {
      const std::string name = absl::StrCat("w", i);
      processes_.push_back(
          {name, std::make_unique<ChildProcess>(std::vector<std::string>{
                     ProgramPath("soak_worker"), name, rendezvous,
                     absl::StrCat(workers)})});
    }
    processes_.push_back({"rendezvous", nullptr});
  }

  absl::Status Run() {
    RETURN_IF_ERROR(ExpectOfAll("joined"));
    const auto begin = Clock::now();
    const int rounds = absl::GetFlag(FLAGS_rounds);
    for (int round = 0; round < rounds; ++round) {
      RETURN_IF_ERROR(Round(round, rounds));
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    return End();
  }

  // Writes what was measured; the line of each that grew.
  std::vector<std::string> Judge() const {
    std::vector<std::string> grew;
    for (const Process& process : processes_) Judge(process, grew);
    std::printf(
        "{\"what\": \"rpc_soak\", \"calls\": %d, \"rrefs\": %d, "
        "\"seconds\": %.1f, \"grew\": %zu}\n",
        absl::GetFlag(FLAGS_calls), absl::GetFlag(FLAGS_rrefs), seconds_,
        grew.size());
    return grew;
  }

 private:
  absl::Status ExpectOfAll(const std::string& wanted) {
    for (const Process& process : processes_) {
      if (process.child == nullptr) continue;
      const auto line = process.child->ReadLine(Clock::now() + kPatience);
      if (line == wanted) continue;
      return absl::InternalError(absl::StrCat(process.name, " should say '",
                                              wanted, "', and says '",
                                              line.value_or("nothing"), "'"));
    }
    return absl::OkStatus();
  }

  void TellAll(const std::string& line) {
    for (const Process& process : processes_) {
      if (process.child != nullptr) process.child->WriteLine(line);
    }
  }

  // The part of `all` that falls to this round and one worker.
  static int Share(int all, int round, int rounds, size_t worker,
                   size_t workers) {
    const auto parts = static_cast<int64_t>(workers) * rounds;
    const auto part =
        static_cast<int64_t>(workers) * round + static_cast<int64_t>(worker);
    return static_cast<int>(all * (part + 1) / parts - all * part / parts);
  }

  absl::Status Round(int round, int rounds) {
    const size_t workers = processes_.size() - 1;
    for (size_t i = 0; i < workers; ++i) {
      const uint64_t part =
          static_cast<uint64_t>(round) * workers + static_cast<uint64_t>(i);
      processes_[i].child->WriteLine(absl::StrCat(
          "run ", Share(absl::GetFlag(FLAGS_calls), round, rounds, i, workers),
          " ", Share(absl::GetFlag(FLAGS_rrefs), round, rounds, i, workers),
          " ", absl::GetFlag(FLAGS_seed) + part));
    }
    RETURN_IF_ERROR(ExpectOfAll("done"));
    TellAll("check");
    RETURN_IF_ERROR(ExpectOfAll("idle"));
    for (Process& process : processes_) {
      ASSIGN_OR_RETURN(const ProcessUsage usage, UsageOf(process.pid()));
      process.usages.push_back(usage);
    }
    return absl::OkStatus();
  }

  absl::Status End() {
    for (Process& process : processes_) {
      if (process.child != nullptr) process.child->CloseInput();
    }
    for (Process& process : processes_) {
      if (process.child == nullptr) continue;
      const auto status = process.child->Wait(Clock::now() + kPatience);
      if (!status.has_value() || !WIFEXITED(*status) ||
          WEXITSTATUS(*status) != 0) {
        return absl::InternalError(process.name + " does not end with 0");
      }
    }
    return absl::OkStatus();
  }

  static void Judge(const Process& process, std::vector<std::string>& grew) {
    const size_t rounds = process.usages.size(), warm = rounds / 4;
    const size_t third = (rounds - warm) / 3;
    const Held early = MeanOf(process.usages, warm, warm + third);
    const Held late = MeanOf(process.usages, rounds - third, rounds);
    std::printf(
        "{\"what\": \"rpc_soak process\", \"name\": \"%s\", "
        "\"resident_kb_early\": %ld, \"resident_kb_late\": %ld, "
        "\"shared_kb\": %ld, \"descriptors_early\": %d, "
        "\"descriptors_late\": %d, \"threads\": %d}\n",
        process.name.c_str(), early.kb, late.kb,
        process.usages.back().shared_kb, early.descriptors, late.descriptors,
        process.usages.back().threads);
    if (late.kb - early.kb > absl::GetFlag(FLAGS_max_growth_kb)) {
      grew.push_back(absl::StrCat("the memory of ", process.name, " grew from ",
                                  early.kb, " to ", late.kb, " kB"));
    }
    if (late.descriptors > early.descriptors) {
      grew.push_back(absl::StrCat("the descriptors of ", process.name,
                                  " grew from ", early.descriptors, " to ",
                                  late.descriptors));
    }
  }

  std::vector<Process> processes_;
  double seconds_ = 0;
};

int Run() {
  auto rendezvous = rpc::RendezvousServer::Make("127.0.0.1:0");
  if (!rendezvous.ok()) {
    std::fprintf(stderr, "%s\n", rendezvous.status().ToString().c_str());
    return 1;
  }
  Soak soak((*rendezvous)->address());
  const absl::Status status = soak.Run();
  if (!status.ok()) {
    std::fprintf(stderr, "rpc_soak: %s\n", status.ToString().c_str());
    return 1;
  }
  const std::vector<std::string> grew = soak.Judge();
  for (const std::string& line : grew) {
    std::fprintf(stderr, "rpc_soak: %s\n", line.c_str());
  }
  return grew.empty() ? 0 : 1;
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "works a cluster of processes for long and looks whether they grow");
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_rounds) < 8 || absl::GetFlag(FLAGS_workers) < 2) {
    std::fprintf(stderr, "rpc_soak: 8 rounds and 2 workers at least\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);  // of workers that died
  return baton::testing::Run();
}
