// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/wait_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "rpc/rendezvous.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

WorkerInfo OnlyNamed(const std::string& name) {
  WorkerInfo worker;
  worker.name = name;
  worker.incarnation = 1;
  worker.address = "127.0.0.1:2";
  return worker;
}

// What a notice has said, for a test that waits for it.
class Heard {
 public:
  WaitNotice::Times Every(milliseconds time) {
    return {.first = time, .again = time, .say = [this](const std::string& t) {
              MutexLock lock(mutex_);
              lines_.push_back(t);
              changed_.NotifyAll();
            }};
  }
  // The first line that comes with `text`; none within 10 s is none at all.
  std::string Await(const std::string& text) {
    const auto end = WaitNotice::Clock::now() + seconds(10);
    MutexLock lock(mutex_);
    for (size_t next = 0;; ++next) {
      while (next == lines_.size()) {
        if (!changed_.WaitUntil(mutex_, end)) return "";
      }
      if (lines_[next].find(text) != std::string::npos) return lines_[next];
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST(WaitNotice, SaysForWhatAndForHowLongStill) {
  Heard heard;
  WaitNotice notice("worker a", "waits for bob",
                    WaitNotice::Clock::now() + seconds(3600),
                    heard.Every(milliseconds(1)));
  EXPECT_EQ(heard.Await("bob"),
            "worker a waits for bob; it gives up in 3600 s");
  notice.Now("waits for carol");
  EXPECT_THAT(heard.Await("carol"), HasSubstr("worker a waits for carol"));
}

// A wrong address is the mistake that everybody makes; without a word it looks
// like work for as long as a minute.
TEST(WaitNotice, AWorkerThatNobodyAnswersSaysSo) {
  ::testing::internal::CaptureStderr();
  const auto joined =
      Join("127.0.0.1:1",
           {.self = OnlyNamed("a"), .world_size = 2, .timeout = seconds(4)});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(said, HasSubstr("worker a waits for the rendezvous at "
                              "127.0.0.1:1, where nobody answers yet"));
}

TEST(WaitNotice, AWorkerThatTheOthersLeaveAloneSaysSo) {
  const auto server = RendezvousServer::Make("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  ::testing::internal::CaptureStderr();
  const auto joined =
      Join((*server)->address(),
           {.self = OnlyNamed("a"), .world_size = 3, .timeout = seconds(4)});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(said, HasSubstr("until 3 workers of cluster baton have come"));
}

}  // namespace
}  // namespace baton::rpc
