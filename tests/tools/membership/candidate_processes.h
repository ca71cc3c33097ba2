// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::testing {

// Three baton-rendezvous, of which one serves at a time. Confined to one
// thread.
class CandidateProcesses {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kCount = 3;

  CandidateProcesses(const std::string& etcd, int ttl_s) {
    command_ = {ProgramPath("baton-rendezvous"), "--listen=127.0.0.1:0",
                "--etcd=" + etcd, absl::StrCat("--etcd_ttl=", ttl_s, "s")};
    for (size_t i = 0; i < kCount; ++i) Start(i);
  }

  // Returns the one that next says that it serves; kCount if none does within
  // 30 s.
  size_t AwaitServing() {
    const auto until = Clock::now() + std::chrono::seconds(30);
    while (Clock::now() < until) {
      for (size_t i = 0; i < kCount; ++i) {
        if (processes_[i] == nullptr) continue;
        const auto line = processes_[i]->ReadLine(Clock::now() +
                                                  std::chrono::milliseconds(5));
        if (line && absl::StartsWith(*line, "rendezvous at ")) return i;
      }
    }
    return kCount;
  }
  const std::string& address(size_t i) const { return addresses_[i]; }
  void Kill(size_t i) {
    processes_[i]->Kill(SIGKILL);
    processes_[i]->Wait();
    processes_[i].reset();
  }
  void Start(size_t i) {
    processes_[i] = std::make_unique<ChildProcess>(command_);
    addresses_[i] = AwaitStandingBy(i);
  }
  // Returns once it has stopped.
  void Stop(size_t i) {
    processes_[i]->Kill(SIGSTOP);
    ::waitpid(processes_[i]->pid(), nullptr, WUNTRACED);
  }
  void Continue(size_t i) { processes_[i]->Kill(SIGCONT); }
  // Returns where it stands by once it says so.
  std::string AwaitStandingBy(size_t i) {
    const std::string line =
        processes_[i]
            ->ReadLine(Clock::now() + std::chrono::seconds(30))
            .value_or("");
    EXPECT_TRUE(absl::StartsWith(line, "standing by at ")) << line;
    return std::string(absl::StripPrefix(line, "standing by at "));
  }

 private:
  std::vector<std::string> command_;
  std::unique_ptr<ChildProcess> processes_[kCount];
  std::string addresses_[kCount];
};

}  // namespace baton::testing
