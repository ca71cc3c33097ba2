// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Kills, stops and resumes processes of small clusters at random moments:
//   rpc_chaos [--runs=200] [--seed=1] [--parallel=8] [--limit_ms=2000]
//             [--late=0]
// Each run has a seed that decides what is done to whom and when. Survivors of
// a lost worker must see an error, and no call may take longer, within the
// limit, which is the default lease; the time in which the worker that made a
// call was stopped itself does not count. On a busy machine workers forgive
// each other half a lease (rpc/transports/failure_detector.h), so --late says
// how many runs may be over the limit by half of it at most. All must end with
// empty tables, and with 0. Writes what went wrong, with its seed, and a line
// of JSON; ends with 0 if nothing did. Most of a run is waiting: 200 of them
// take a minute on two cores, beside a compiler or not.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "tests/rpc/chaos/chaos_cluster.h"

namespace baton::testing {
namespace {

struct Flags {
  long runs = 200;
  long seed = 1;
  long parallel = 8;
  long limit_ms = 2000;
  long late = 0;
};

bool Parse(int argc, char** argv, Flags& flags) {
  struct Flag {
    const char* name;
    long* value;
  };
  const Flag known[] = {{"--runs=", &flags.runs},
                        {"--seed=", &flags.seed},
                        {"--parallel=", &flags.parallel},
                        {"--limit_ms=", &flags.limit_ms},
                        {"--late=", &flags.late}};
  for (int i = 1; i < argc; ++i) {
    const auto flag = std::find_if(
        std::begin(known), std::end(known), [&](const Flag& candidate) {
          return std::strncmp(argv[i], candidate.name,
                              std::strlen(candidate.name)) == 0;
        });
    if (flag == std::end(known)) return false;
    char* end = nullptr;
    const char* text = argv[i] + std::strlen(flag->name);
    *flag->value = std::strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || *flag->value < 0) return false;
  }
  return flags.runs > 0 && flags.parallel > 0 && flags.limit_ms > 0;
}

class Series {
 public:
  explicit Series(const Flags& flags) : flags_(flags) {}

  // True when all went as promised.
  bool Run() {
    std::vector<std::thread> threads;
    for (long i = 0; i < flags_.parallel; ++i) {
      threads.emplace_back([this] { RunSome(); });
    }
    for (std::thread& thread : threads) thread.join();
    return Summarise();
  }

 private:
  void RunSome() {
    for (long i = next_++; i < flags_.runs; i = next_++) {
      ChaosCluster cluster;
      const Outcome outcome =
          cluster.Run(static_cast<uint64_t>(flags_.seed + i),
                      std::chrono::milliseconds(flags_.limit_ms));
      MutexLock lock(mutex_);
      failed_ += !outcome.wrong.empty();
      late_ += !outcome.late.empty();
      for (const auto* lines : {&outcome.wrong, &outcome.late}) {
        for (const std::string& line : *lines)
          std::printf("%s\n", line.c_str());
      }
      std::fflush(stdout);
      lost_ms_.insert(lost_ms_.end(), outcome.lost_ms.begin(),
                      outcome.lost_ms.end());
    }
  }

  bool Summarise() {
    MutexLock lock(mutex_);
    std::sort(lost_ms_.begin(), lost_ms_.end());
    const auto at = [this](double part) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (lost_ms_.empty()) return 0.0;
      return lost_ms_[static_cast<size_t>(
          part * static_cast<double>(lost_ms_.size() - 1))];
    };
    std::printf(
        "{\"what\": \"rpc_chaos\", \"runs\": %ld, \"failed\": %ld, \"late\": "
        "%ld, "
        "\"losses_seen\": %zu, \"median_ms\": %.1f, \"p99_ms\": %.1f, "
        "\"worst_ms\": %.1f}\n",
        flags_.runs, failed_, late_, lost_ms_.size(), at(0.5), at(0.99), at(1));
    return failed_ == 0 && late_ <= flags_.late;
  }

  const Flags flags_;
  std::atomic<long> next_{0};
  Mutex mutex_;
  long failed_ ABSL_GUARDED_BY(mutex_) = 0;
  long late_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<double> lost_ms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  baton::testing::Flags flags;
  if (!baton::testing::Parse(argc, argv, flags)) {
    std::fprintf(stderr,
                 "usage: rpc_chaos [--runs=N] [--seed=N] [--parallel=N] "
                 "[--limit_ms=N] [--late=N]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);  // of victims
  return baton::testing::Series(flags).Run() ? 0 : 1;
}
