// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "tests/support/child_process.h"
#include "tests/support/program_path.h"

namespace baton::testing {

// Members of a process group in their own processes, named w0, w1, ..., which
// are started as
//   PROGRAM NAME RENDEZVOUS WORLD_SIZE FLAGS... NUMBER
// where NUMBER is 1, 2, 4, ... Each prints "running", then why its group is
// "broken", then the mean of the remaining members' numbers. Confined to one
// thread.
class MemberProcesses {
 public:
  using Clock = std::chrono::steady_clock;

  MemberProcesses(int count, const std::string& program,
                  const std::vector<std::string>& flags = {}) {
    for (int i = 0; i < count; ++i) {
      std::vector<std::string> command = {
          ProgramPath(program), absl::StrCat("w", i), server_->address(),
          absl::StrCat(count)};
      command.insert(command.end(), flags.begin(), flags.end());
      command.push_back(absl::StrCat(1 << i));
      members_.push_back(std::make_unique<ChildProcess>(command));
    }
    for (auto& member : members_) EXPECT_EQ(member->ReadLine(), "running");
  }

  // Kills a member within the next milliseconds, in any phase of a step,
  // because some steps take less than one. Expects the others to name it within
  // two seconds and to continue with the right mean.
  void KillAndExpectTheRestToGoOn(int killed, std::mt19937& random) {
    const auto end = Clock::now() + std::chrono::microseconds(random() % 5000);
    while (Clock::now() < end) std::this_thread::yield();
    SignalAndExpectTheRestToGoOn(killed, SIGKILL, std::chrono::seconds(2));
  }
  // Does the same at once, with another signal and limit.
  void SignalAndExpectTheRestToGoOn(int killed, int signal,
                                    std::chrono::seconds within) {
    const auto begin = Clock::now();
    members_[static_cast<size_t>(killed)]->Kill(signal);
    int sum = 0;
    for (int i = 0; i < count(); ++i) {
      if (i == killed) continue;
      sum += 1 << i;
      const std::string line = Next(i);
      EXPECT_LT(Clock::now() - begin, within) << "w" << i;
      EXPECT_EQ(line.rfind("broken UNAVAILABLE", 0), 0u) << line;
      EXPECT_NE(line.find(absl::StrCat("(w", killed, ")")), std::string::npos)
          << line;
    }
    const int left = count() - 1;
    for (int i = 0; i < count(); ++i) {
      if (i == killed) continue;
      EXPECT_EQ(Next(i), absl::StrCat("mean ", static_cast<double>(sum) / left,
                                      " of ", left))
          << "w" << i;
    }
  }

 private:
  int count() const { return static_cast<int>(members_.size()); }
  std::string Next(int i) {
    return members_[static_cast<size_t>(i)]
        ->ReadLine(Clock::now() + std::chrono::seconds(30))
        .value_or("nothing");
  }

  const std::unique_ptr<rpc::RendezvousServer> server_ =
      *rpc::RendezvousServer::Make("127.0.0.1:0");
  std::vector<std::unique_ptr<ChildProcess>> members_;
};

}  // namespace baton::testing
