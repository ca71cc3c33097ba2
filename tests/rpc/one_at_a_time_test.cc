// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Calls of one object: one at a time, but for those that say otherwise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rpc/rref.h"
#include "tests/rpc/counter.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MATCHER_P(Gives, matcher, "") {
  *result_listener << arg.status().ToString();
  return arg.ok() &&
         ::testing::ExplainMatchResult(matcher, *arg, result_listener);
}

// What handlers meet in; one for each test.
struct Room {
  // True once two are in it at a time.
  bool Meet(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    BlockingScope blocking;
    MutexLock lock(mutex);
    ++inside;
    met = met || inside > 1;
    changed.NotifyAll();
    while (!met && changed.WaitUntil(mutex, deadline)) {
    }
    const bool both = met;
    --inside;
    return both;
  }
  Mutex mutex;
  CondVar changed;
  int inside ABSL_GUARDED_BY(mutex) = 0;
  bool met ABSL_GUARDED_BY(mutex) = false;
  Gate entered, open;
  Promise<int> later;
  std::atomic<int> crossing{0};
  Gate both_cross;
};
std::shared_ptr<Room>& TheRoom() {
  static std::shared_ptr<Room> room;
  return room;
}

constexpr auto kApart = 150ms;  // two do not meet that may not
constexpr auto kTogether = 8s;  // two that may meet do before

class OneDesk {
 public:
  bool Write() { return TheRoom()->Meet(kApart); }
  bool WriteBeside() { return TheRoom()->Meet(kTogether); }
  bool Read() const { return TheRoom()->Meet(kTogether); }
  void Append(int n) { written_.push_back(n); }
  std::vector<int> Written() const { return written_; }
  // Until the test lets it.
  void Stay() {
    TheRoom()->entered.Open();
    TheRoom()->open.Await();
  }
  Future<int> Later() {
    TheRoom()->entered.Open();
    return TheRoom()->later.future();
  }
  // By another object, which calls back.
  absl::StatusOr<std::vector<int>> AppendBy(RRef<class Clerk> clerk,
                                            RRef<OneDesk> self);
  absl::StatusOr<std::vector<int>> LookBy(RRef<class Clerk> clerk,
                                          RRef<OneDesk> self) const;
  // Uses another desk when another one does this as well.
  absl::Status Cross(RRef<OneDesk> other) {
    Room& room = *TheRoom();
    if (++room.crossing == 2) room.both_cross.Open();
    room.both_cross.Await();
    return other.Async<&OneDesk::Append>(rpc::CallOptions{.timeout = 2s}, 1)
        .Await();
  }

  using Exports =
      rpc::Methods<rpc::kConstructor<>, &OneDesk::Write,
                   rpc::kConcurrent<&OneDesk::WriteBeside>, &OneDesk::Read,
                   &OneDesk::Append, &OneDesk::Written, &OneDesk::Stay,
                   &OneDesk::Later, &OneDesk::AppendBy, &OneDesk::LookBy,
                   &OneDesk::Cross>;

 private:
  std::vector<int> written_;
};

class Clerk {
 public:
  // Neither takes its CallContext.
  absl::Status AppendAt(RRef<OneDesk> desk) {
    // Two at a time, of which one waits for the other.
    auto first = desk.Async<&OneDesk::Append>(1);
    auto second = desk.Async<&OneDesk::Append>(2);
    RETURN_IF_ERROR(first.Await());
    return second.Await();
  }
  // With it, and from another thread.
  absl::Status AppendWithin(rpc::CallContext& call, RRef<OneDesk> desk) {
    absl::Status status;
    std::thread([&] {
      status = desk.Async<&OneDesk::Append>(call, 3).Await();
    }).join();
    return status;
  }
  using Exports =
      rpc::Methods<rpc::kConstructor<>, &Clerk::AppendAt, &Clerk::AppendWithin>;
};

absl::StatusOr<std::vector<int>> OneDesk::AppendBy(RRef<Clerk> clerk,
                                                   RRef<OneDesk> self) {
  RETURN_IF_ERROR(clerk.Async<&Clerk::AppendAt>(self).Await());
  RETURN_IF_ERROR(clerk.Async<&Clerk::AppendWithin>(self).Await());
  return written_;
}

absl::StatusOr<std::vector<int>> OneDesk::LookBy(RRef<Clerk> clerk,
                                                 RRef<OneDesk> self) const {
  RETURN_IF_ERROR(clerk.Async<&Clerk::AppendAt>(self).Await());
  return written_;
}

// A function that uses an object as a method would.
Future<bool> WriteAt(rpc::CallContext& call, RRef<OneDesk> desk) {
  return desk.With(call, rpc::Access::kExclusive,
                   [](OneDesk& local) { return local.Write(); });
}

void FillDesk(rpc::Registry& registry) {
  registry.Add<OneDesk>().Add<Clerk>();
  registry.AddFunction<&WriteAt>().AddFunction<&Sum>();
}

class OneAtATimeTest : public ::testing::TestWithParam<TransportKind> {
 protected:
  OneAtATimeTest() { TheRoom() = std::make_shared<Room>(); }
  ~OneAtATimeTest() override { cluster_.ExpectIdle(); }

  template <typename T>
  RRef<T> At(const std::string& worker) {
    auto made = rpc::Create<T>(cluster_["alice"], worker).Await();
    EXPECT_THAT(made, IsOk());
    return made.value_or(RRef<T>());
  }
  std::vector<rpc::ObjectInfo> ObjectsOf(const std::string& worker) {
    return cluster_[worker].GetDebugInfo().objects;
  }
  // Waits until so many calls wait for the only object of bob.
  bool AwaitWaiting(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kTogether;
    while (std::chrono::steady_clock::now() < deadline) {
      if (ObjectsOf("bob").at(0).waited_for_by.size() == count) return true;
      std::this_thread::yield();
    }
    return false;
  }

  LocalCluster cluster_{{.names = {"alice", "bob", "carol"},
                         .fill = FillDesk,
                         .worker_threads = 1,
                         .transports = MakerOf(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(, OneAtATimeTest, kTransports, TransportName);

// Without a BlockingScope a pool of one thread would do as well: Meet has one.
TEST_P(OneAtATimeTest, CallsThatMayWriteDoNotOverlap) {
  auto desk = At<OneDesk>("bob");
  auto first = desk.Async<&OneDesk::Write>();
  auto second = desk.Async<&OneDesk::Write>();
  auto third = cluster_["alice"].Async<&WriteAt>("bob", desk);
  EXPECT_THAT(first.Await(), Gives(false));
  EXPECT_THAT(second.Await(), Gives(false));
  EXPECT_THAT(third.Await(), Gives(false));
}

TEST_P(OneAtATimeTest, CallsOfTheOwnerAndThroughAnotherHandleDoNotOverlap) {
  auto object = std::make_shared<OneDesk>();
  auto desk = RRef<OneDesk>::Make(cluster_["alice"], object);
  auto again = RRef<OneDesk>::Make(cluster_["alice"], object);
  auto first = desk.Async<&OneDesk::Write>();
  auto second = again.Async<&OneDesk::Write>();
  EXPECT_THAT(first.Await(), Gives(false));
  EXPECT_THAT(second.Await(), Gives(false));
}

TEST_P(OneAtATimeTest, ConstAndConcurrentMethodsRunBesideEachOther) {
  auto desk = At<OneDesk>("bob");
  auto first = desk.Async<&OneDesk::Read>();
  auto second = desk.Async<&OneDesk::WriteBeside>();
  EXPECT_THAT(first.Await(), Gives(true));
  EXPECT_THAT(second.Await(), Gives(true));
}

TEST_P(OneAtATimeTest, AnAsynchronousHandlerLetsGoWhenItReturns) {
  auto desk = At<OneDesk>("bob");
  auto later = desk.Async<&OneDesk::Later>();
  ASSERT_TRUE(TheRoom()->entered.Await());
  EXPECT_THAT(desk.Async<&OneDesk::Append>(1).Await(), IsOk());
  EXPECT_FALSE(later.ready());
  TheRoom()->later.Set(5);
  EXPECT_THAT(later.Await(), Gives(5));
}

TEST_P(OneAtATimeTest, CallsRunInTheOrderInWhichTheyWereMade) {
  auto desk = At<OneDesk>("bob");
  auto stay = desk.Async<&OneDesk::Stay>();
  ASSERT_TRUE(TheRoom()->entered.Await());
  std::vector<Future<void>> appended;
  for (int i = 0; i < 20; ++i) {
    appended.push_back(desk.Async<&OneDesk::Append>(i));
  }
  auto written = desk.Async<&OneDesk::Written>();
  appended.push_back(desk.Async<&OneDesk::Append>(20));
  // They wait without a thread.
  EXPECT_TRUE(AwaitWaiting(22));
  EXPECT_THAT(cluster_["alice"].Async<&Sum>("bob", 1, 2).Await(), Gives(3));
  TheRoom()->open.Open();
  EXPECT_THAT(WaitAll(appended).Await(), IsOk());
  auto numbers = written.Await();
  ASSERT_THAT(numbers, IsOk());
  EXPECT_EQ(numbers->size(), 20u);
  EXPECT_TRUE(std::is_sorted(numbers->begin(), numbers->end()));
  EXPECT_THAT(stay.Await(), IsOk());
}

TEST_P(OneAtATimeTest, AHandlersOwnCallsMayComeBack) {
  auto desk = At<OneDesk>("bob");
  auto clerk = At<Clerk>("carol");
  EXPECT_THAT(desk.Async<&OneDesk::AppendBy>(clerk, desk).Await(),
              Gives(ElementsAre(1, 2, 3)));
  EXPECT_THAT(desk.Async<&OneDesk::LookBy>(clerk, desk).Await(),
              Gives(ElementsAre(1, 2, 3, 1, 2)));
}

TEST_P(OneAtATimeTest, TwoThatWaitForEachOtherAreNamed) {
  auto front = At<OneDesk>("bob");
  auto back = At<OneDesk>("carol");
  auto there = front.Async<&OneDesk::Cross>(back);
  auto here = back.Async<&OneDesk::Cross>(front);
  // The first that gives up finds the other's call, and lets it go on.
  std::vector<std::string> failures;
  for (const absl::Status& end : {there.Await(), here.Await()}) {
    if (end.ok()) continue;
    EXPECT_TRUE(absl::IsDeadlineExceeded(end)) << end;
    failures.emplace_back(end.message());
  }
  EXPECT_THAT(
      failures,
      Contains(AllOf(HasSubstr("OneDesk::Append"),
                     ::testing::ContainsRegex("OneDesk [0-9]+ of"),
                     HasSubstr("is used by OneDesk::Cross of worker alice"),
                     HasSubstr("which has called OneDesk::Append at "
                               "worker"),
                     HasSubstr("deadlock"))));
}

TEST_P(OneAtATimeTest, WhoUsesAnObjectAndWhoWaitsForItCanBeSeen) {
  auto desk = At<OneDesk>("bob");
  auto stay = desk.Async<&OneDesk::Stay>();
  ASSERT_TRUE(TheRoom()->entered.Await());
  rpc::CancelSource cancel;
  auto given_up = desk.Async<&OneDesk::Append>(
      rpc::CallOptions{.cancel = cancel.token()}, 1);
  auto late =
      desk.Async<&OneDesk::Append>(rpc::CallOptions{.timeout = 500ms}, 2);
  ASSERT_TRUE(AwaitWaiting(2));
  const rpc::ObjectInfo object = ObjectsOf("bob").at(0);
  EXPECT_THAT(object.used_by,
              ElementsAre(HasSubstr("OneDesk::Stay of worker alice")));
  EXPECT_THAT(object.waited_for_by,
              Contains(HasSubstr("OneDesk::Append of worker alice")));
  cancel.Cancel();
  EXPECT_THAT(given_up.Await(), Fails(StatusCode::kCancelled, ""));
  EXPECT_THAT(late.Await(), Fails(StatusCode::kDeadlineExceeded,
                                  "is used by OneDesk::Stay of worker alice"));
  EXPECT_TRUE(AwaitWaiting(0));
  TheRoom()->open.Open();
  EXPECT_THAT(stay.Await(), IsOk());
  EXPECT_THAT(desk.Async<&OneDesk::Written>().Await(),
              Gives(::testing::IsEmpty()));
}

}  // namespace
}  // namespace baton::testing
