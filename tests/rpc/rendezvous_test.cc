// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/rendezvous_groups.h"
#include "rpc/transports/grpc.h"
#include "tests/rpc/rendezvous_requests.h"
#include "tests/support/status_matchers.h"

namespace baton::rpc {
namespace {

using baton::testing::Enter;
using baton::testing::Fails;
using baton::testing::Listed;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Joined = absl::StatusOr<std::vector<WorkerInfo>>;

JoinOptions Options(const std::string& name, int world_size, int rank = -1) {
  static std::atomic<uint64_t> incarnation{1};
  return {.cluster = "test",
          .self = {name, Rank{0}, incarnation++, "127.0.0.1:" + name},
          .wanted_rank = rank,
          .world_size = world_size,
          .timeout = milliseconds(30'000)};
}

Joined JoinAt(const std::string& address, const JoinOptions& options) {
  ASSIGN_OR_RETURN(Membership joined, Join(address, options));
  return joined.workers;
}

std::future<Joined> JoinSoon(const std::string& address, JoinOptions options) {
  return std::async(std::launch::async,
                    [address, options] { return JoinAt(address, options); });
}

std::unique_ptr<RendezvousServer> NewServer() {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(Rendezvous, ClustersAndNamesAreLimited) {
  RendezvousGroups groups;
  absl::Status last;
  const auto enter = [&](const std::string& cluster, JoinOptions options) {
    options.cluster = cluster;
    last = absl::OkStatus();
    Enter(groups, options, [&](const auto& result) { last = result.status(); });
  };
  for (int i = 0; i < 1000; ++i) {
    enter(absl::StrCat("c", i), Options("alice", 2));
    ASSERT_TRUE(last.ok()) << last;
  }
  enter("one-more", Options("alice", 2));
  EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted);
  enter("c7", Options("bob", 2));  // those that are there go on
  EXPECT_TRUE(last.ok()) << last;
  JoinOptions odd = Options("carol", 2);
  odd.expected = {"a\nline"};
  enter("c8", odd);
  EXPECT_EQ(last.code(), absl::StatusCode::kInvalidArgument);
  groups.Close();
}

TEST(Rendezvous, EverybodyGetsTheSameListByRank) {
  auto server = NewServer();
  auto a = JoinSoon(server->address(), Options("alice", 3, 2));
  auto b = JoinSoon(server->address(), Options("bob", 3, 0));
  const Joined carol = JoinAt(server->address(), Options("carol", 3));
  const Joined alice = a.get(), bob = b.get();
  ASSERT_TRUE(alice.ok()) << alice.status();
  ASSERT_TRUE(carol.ok() && bob.ok());
  EXPECT_EQ(*alice, *bob);
  EXPECT_EQ(*alice, *carol);
  const std::vector<std::string> names = {"bob", "carol", "alice"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*alice)[i].name, names[i]);
    EXPECT_EQ((*alice)[i].rank, Rank{i});
    EXPECT_EQ((*alice)[i].address, "127.0.0.1:" + names[i]);
    EXPECT_NE((*alice)[i].incarnation, 0u);
  }
}

TEST(Rendezvous, ListsWhoHasMetToWhoOnlyLooks) {
  auto server = NewServer();
  const milliseconds timeout(30'000);
  const Joined nobody = ListWorkers(server->address(), "test", timeout);
  EXPECT_THAT(nobody, Fails(absl::StatusCode::kNotFound,
                            absl::StrCat("rendezvous at ", server->address(),
                                         ": no cluster test has met here: "
                                         "nobody is here")));
  auto a = JoinSoon(server->address(), Options("alice", 2));
  const Joined bob = JoinAt(server->address(), Options("bob", 2));
  ASSERT_TRUE(bob.ok()) << bob.status();
  const Joined listed = ListWorkers(server->address(), "test", timeout);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(*listed, *bob);
  EXPECT_TRUE(a.get().ok());
}

TEST(Rendezvous, SaysWhoHasComeOfAClusterThatHasNotMet) {
  RendezvousGroups groups;
  const auto why_not = [&](const std::string& cluster) {
    return std::string(Listed(groups, cluster).status().message());
  };
  const auto enter = [&](JoinOptions options) {
    options.cluster = options.world_size == 1 ? "other" : "test";
    Enter(groups, options, [](const auto&) {});
  };
  enter(Options("eve", 1));
  EXPECT_EQ(why_not("test"),
            "no cluster test has met here: nobody of it is here; others have: "
            "cluster other (1 worker)");
  enter(Options("dave", kOneMore));
  EXPECT_EQ(why_not("test"),
            "no cluster test has met here: dave may join once it has");
  JoinOptions alice = Options("alice", 3);
  alice.expected = {"alice", "bob", "carol"};
  enter(alice);
  EXPECT_EQ(why_not("test"),
            "no cluster test has met here: 1 of 3 workers came (alice); "
            "missing: bob, carol");
  groups.Close();
}

TEST(Rendezvous, OneServiceHoldsManyClusters) {
  auto server = NewServer();
  JoinOptions one = Options("alice", 1), two = Options("alice", 1);
  two.cluster = "other";
  EXPECT_TRUE(Join(server->address(), one).ok());
  EXPECT_TRUE(Join(server->address(), two).ok());
}

TEST(Rendezvous, ADoubledNameIsAnErrorOnEveryWorkerThatHasIt) {
  auto server = NewServer();
  auto one = JoinSoon(server->address(), Options("alice", 3));
  auto two = JoinSoon(server->address(), Options("alice", 3));
  for (const Joined& joined : {one.get(), two.get()}) {
    EXPECT_EQ(joined.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(joined.status().message()),
                HasSubstr("two workers came with the name alice"));
  }
}

TEST(Rendezvous, TheDeadlineNamesWhoIsMissing) {
  RendezvousGroups groups;
  const auto wait_in_vain = [&](const JoinOptions& options) {
    absl::Status outcome;
    Enter(groups, options,
          [&](const auto& joined) { outcome = joined.status(); });
    EXPECT_TRUE(outcome.ok()) << outcome;
    groups.Reap(RendezvousGroups::Clock::now() + options.timeout,
                options.timeout);
    EXPECT_EQ(outcome.code(), absl::StatusCode::kDeadlineExceeded);
    return std::string(outcome.message());
  };
  JoinOptions options = Options("alice", 3);
  const std::string message = wait_in_vain(options);
  EXPECT_THAT(message, HasSubstr("1 of 3 workers came"));
  EXPECT_THAT(message, HasSubstr("(alice); missing: 2 more"));
  options.expected = {"alice", "bob", "carol"};
  EXPECT_THAT(wait_in_vain(options), HasSubstr("missing: bob, carol"));
}

TEST(Rendezvous, WhoGaveUpDoesNotCount) {
  auto server = NewServer();
  JoinOptions hasty = Options("hasty", 2);
  hasty.timeout = milliseconds(50);
  EXPECT_FALSE(Join(server->address(), hasty).ok());
  auto a = JoinSoon(server->address(), Options("alice", 2));
  const Joined bob = JoinAt(server->address(), Options("bob", 2));
  ASSERT_TRUE(bob.ok()) << bob.status();
  EXPECT_EQ(a.get()->size(), 2u);
}

TEST(Rendezvous, BadRequestsAreRefused) {
  RendezvousGroups groups;
  const auto code = [&](const JoinOptions& options) {
    absl::Status refused;
    Enter(groups, options,
          [&](const auto& joined) { refused = joined.status(); });
    // The worker itself does not ask for what would be refused.
    EXPECT_EQ(Join("127.0.0.1:1", options).status(), refused);
    return refused.code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(Options("", 1)), invalid);
  EXPECT_EQ(code(Options("two words", 1)), invalid);
  EXPECT_EQ(code(Options(std::string(128, 'a'), 1)), invalid);
  EXPECT_EQ(code(Options("alice", 0)), invalid);
  EXPECT_EQ(code(Options("alice", 1 << 20)), invalid);
  EXPECT_EQ(code(Options("alice", 2, 2)), invalid);
  EXPECT_EQ(code(Options("alice", 2, -2)), invalid);
  JoinOptions odd = Options("alice", 1);
  odd.self.incarnation = 0;
  EXPECT_EQ(code(odd), invalid);
  odd = Options("alice", 1);
  odd.cluster = "a b";
  EXPECT_EQ(code(odd), invalid);
}

TEST(Rendezvous, RanksAndWorldSizesMustAgree) {
  RendezvousGroups groups;
  std::map<std::string, baton::testing::JoinResult> results;
  const auto enter = [&](const JoinOptions& options) {
    Enter(groups, options,
          [&results, name = options.self.name](const auto& joined) {
            results.insert_or_assign(name, joined);
          });
  };
  enter(Options("alice", 2, 1));
  enter(Options("odd", 3));
  ASSERT_EQ(results.count("odd"), 1u);
  EXPECT_EQ(results.at("odd").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(results.at("odd").status().message()),
              HasSubstr("worker alice one of 2"));
  enter(Options("bob", 2, 1));
  EXPECT_THAT(std::string(results.at("bob").status().message()),
              HasSubstr("rank 1 is wanted by worker alice and by worker bob"));
  EXPECT_EQ(results.count("alice"), 0u);
  enter(Options("carol", 2));
  ASSERT_TRUE(results.at("alice").ok());
  EXPECT_EQ((*results.at("alice"))->members(0).name(), "carol");
}

TEST(Rendezvous, ACompleteClusterTakesNobodyUntilAllHaveLeft) {
  auto server = NewServer();
  const JoinOptions alice = Options("alice", 1);
  ASSERT_TRUE(Join(server->address(), alice).ok());
  EXPECT_EQ(Join(server->address(), Options("alice", 1)).status().code(),
            absl::StatusCode::kAlreadyExists);
  const auto leave = [&](const WorkerInfo& self) {
    return Leave(server->address(), "test", self, milliseconds(30'000));
  };
  EXPECT_EQ(leave({"bob", Rank{0}, 7, ""}).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(leave(alice.self).ok());
  EXPECT_TRUE(Join(server->address(), Options("alice", 1)).ok());
}

TEST(Rendezvous, AServiceThatIsNotThereIsNamed) {
  auto server = NewServer();
  const std::string address = server->address();
  server.reset();
  JoinOptions options = Options("alice", 1);
  options.timeout = milliseconds(150);
  const absl::Status status = Join(address, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot reach the rendezvous at " + address + ": "));
  EXPECT_EQ(Join("nonsense", options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Rendezvous, AServiceThatEndsEndsTheWait) {
  auto server = NewServer();
  JoinOptions options = Options("alice", 2);
  options.timeout = milliseconds(1000);
  auto waiting = JoinSoon(server->address(), options);
  server.reset();
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kUnavailable);
  RendezvousGroups groups;
  absl::Status outcome;
  Enter(groups, options,
        [&](const auto& joined) { outcome = joined.status(); });
  EXPECT_TRUE(outcome.ok());
  groups.Close();
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
}

TEST(Rendezvous, ABusyPortIsNamed) {
  auto server = NewServer();
  const absl::Status status =
      RendezvousServer::Make(server->address()).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot listen on " + server->address() + ": port"));
}

TEST(Rendezvous, AWorkerCanHostIt) {
  auto host = MakeGrpcTransport({.rendezvous = RendezvousService::Make()});
  ASSERT_TRUE(host.ok()) << host.status();
  auto bob = JoinSoon((*host)->address(), Options("bob", 2));
  const Joined alice = JoinAt((*host)->address(), Options("alice", 2));
  EXPECT_TRUE(alice.ok()) << alice.status();
  EXPECT_TRUE(bob.get().ok());
}

TEST(Rendezvous, AWorkerThatHostsNoneIsNamed) {
  auto worker = MakeGrpcTransport({});
  ASSERT_TRUE(worker.ok());
  const absl::Status status =
      Join((*worker)->address(), Options("bob", 2)).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a server that is none"));
}

TEST(WorkerList, IsParsedByPosition) {
  const Joined list = ParseWorkerList("alice=h1:10,bob=[::1]:20");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[1], (WorkerInfo{"bob", Rank{1}, 0, "[::1]:20"}));
}

TEST(WorkerList, ErrorsNameTheEntry) {
  for (const std::string bad :
       {"", "alice", "alice=", "alice=host", "alice=host:x", "alice=host:0",
        "alice=host:70000", "a b=host:1", "=host:1", "alice=:1",
        "alice=h:1,alice=h:2", "alice=h:1,bob=h:1", "alice=h:1,"}) {
    EXPECT_EQ(ParseWorkerList(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  EXPECT_THAT(
      std::string(ParseWorkerList("alice=h:1,alice=h:2").status().message()),
      HasSubstr("alice=h:2"));
}

}  // namespace
}  // namespace baton::rpc
