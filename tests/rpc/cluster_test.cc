// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/cluster.h"

#include <gtest/gtest.h>

#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/counter.h"
#include "tests/support/status_matchers.h"
#include "tests/support/within.h"

namespace baton::testing {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using rpc::RendezvousServer;
using Joined = absl::StatusOr<std::unique_ptr<rpc::Agent>>;
using Agents = std::vector<std::unique_ptr<rpc::Agent>>;

std::unique_ptr<RendezvousServer> NewClusterServer() {
  auto server = RendezvousServer::Make("127.0.0.1:0");
  EXPECT_THAT(server, IsOk());
  return *std::move(server);
}

// Where nobody listens any more. Below the ports that the kernel gives to those
// who connect: one of them may else take it before it is listened on again.
std::string FreeAddress() {
  std::random_device random;
  std::string address;
  do {
    address = absl::StrCat("127.0.0.1:", 10'000 + random() % 20'000);
  } while (!RendezvousServer::Make(address).ok());
  return address;
}

rpc::ClusterOptions By(const RendezvousServer& server, const std::string& name,
                       int world_size) {
  rpc::ClusterOptions options;
  options.name = name;
  options.rendezvous = server.address();
  options.world_size = world_size;
  options.join_timeout = 30s;
  return options;
}

rpc::ClusterOptions InList(const std::string& peers, const std::string& name) {
  rpc::ClusterOptions options;
  options.name = name;
  options.peers = peers;
  options.join_timeout = 30s;
  return options;
}

Joined JoinNow(rpc::ClusterOptions options) {
  rpc::Registry registry;
  FillCounter(registry);
  return JoinCluster(std::move(options), std::move(registry));
}

// Of one who comes to the rendezvous and waits there until its time is up; a
// busy machine may need more of it to come there at all.
absl::Status WaitInVain(rpc::ClusterOptions options) {
  absl::Status status;
  for (options.join_timeout = 200ms; options.join_timeout < 15s;
       options.join_timeout *= 4) {
    status = JoinNow(options).status();
    if (!absl::IsUnavailable(status)) break;
  }
  return status;
}

std::vector<Joined> JoinAll(std::vector<rpc::ClusterOptions> all) {
  std::vector<std::future<Joined>> futures;
  for (auto& options : all) {
    futures.push_back(std::async(std::launch::async, [&options] {
      return JoinNow(std::move(options));
    }));
  }
  std::vector<Joined> joined;
  for (auto& future : futures) joined.push_back(future.get());
  return joined;
}

Agents Started(std::vector<Joined> all) {
  Agents agents;
  for (Joined& joined : all) {
    EXPECT_THAT(joined.status(), IsOk());
    if (joined.ok()) agents.push_back(*std::move(joined));
  }
  return agents;
}

void ExpectAllReachAll(const Agents& agents) {
  for (const auto& agent : agents) {
    EXPECT_EQ(agent->workers().size(), agents.size());
    for (const auto& other : agents) {
      EXPECT_EQ(*agent->Async<&Sum>(other->self().name, 1, 2).Await(), 3);
    }
  }
}

void ShutDown(const Agents& agents) {
  std::vector<std::thread> threads;
  for (const auto& agent : agents) {
    threads.emplace_back(
        [&agent] { EXPECT_THAT(agent->Shutdown({.timeout = 30s}), IsOk()); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Cluster, WorkersMeetAtARendezvous) {
  auto server = NewClusterServer();
  rpc::ClusterOptions last = By(*server, "carol", 3);
  last.rank = 0;
  const Agents agents =
      Started(JoinAll({By(*server, "alice", 3), By(*server, "bob", 3), last}));
  ASSERT_EQ(agents.size(), 3u);
  EXPECT_EQ(agents[2]->self().rank, rpc::Rank{0});
  EXPECT_EQ(agents[0]->Find(rpc::Rank{0})->name, "carol");
  ExpectAllReachAll(agents);
  ShutDown(agents);
}

TEST(Cluster, AListOfWorkersNeedsNoRendezvous) {
  const std::string peers =
      absl::StrCat("alice=", FreeAddress(), ",bob=", FreeAddress());
  const Agents agents =
      Started(JoinAll({InList(peers, "bob"), InList(peers, "alice")}));
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_EQ(agents[0]->self().rank, rpc::Rank{1});
  ExpectAllReachAll(agents);
  ShutDown(agents);
}

TEST(Cluster, AllKnowHowEachComputes) {
  auto server = NewClusterServer();
  rpc::ClusterOptions bobs = By(*server, "bob", 2);
  bobs.dtype = DType::kBF16;
  const Agents agents = Started(JoinAll({By(*server, "alice", 2), bobs}));
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_EQ(agents[0]->self().compute.ToString(), "cpu");
  EXPECT_EQ(agents[1]->self().compute.ToString(), "cpu bf16");
  ExpectAllReachAll(agents);
  for (const auto& agent : agents) {
    EXPECT_EQ(agent->Find("alice")->compute.ToString(), "cpu");
    EXPECT_EQ(agent->Find("bob")->compute.ToString(), "cpu bf16");
  }
  ShutDown(agents);
}

TEST(Cluster, CanBeJoinedAgainUnderTheSameNames) {
  auto server = NewClusterServer();
  uint64_t before = 0;
  for (int round = 0; round < 3; ++round) {
    const Agents agents =
        Started(JoinAll({By(*server, "alice", 2), By(*server, "bob", 2)}));
    ASSERT_EQ(agents.size(), 2u) << "in round " << round;
    EXPECT_NE(agents[0]->self().incarnation, before);
    before = agents[0]->self().incarnation;
    ExpectAllReachAll(agents);
    ShutDown(agents);
  }
}

TEST(Cluster, WhoComesBackFirstWaitsForTheOthersToLeave) {
  auto server = NewClusterServer();
  Agents old =
      Started(JoinAll({By(*server, "alice", 2), By(*server, "bob", 2)}));
  ASSERT_EQ(old.size(), 2u);
  old.erase(old.begin());
  auto alice = std::async(std::launch::async,
                          [&] { return JoinNow(By(*server, "alice", 2)); });
  EXPECT_EQ(alice.wait_for(50ms), std::future_status::timeout);
  old.clear();
  const Joined bob = JoinNow(By(*server, "bob", 2));
  ASSERT_THAT(bob, IsOk());
  ASSERT_THAT(alice.get(), IsOk());
}

// The other one would meet a worker that ends at once.
TEST(Cluster, NobodyHearsOfAWorkerWhoseOptionsOrRegistryAreWrong) {
  auto server = NewClusterServer();
  rpc::ClusterOptions alice = By(*server, "alice", 1);
  alice.agent.worker_threads = 0;
  EXPECT_THAT(JoinNow(alice),
              Fails(StatusCode::kInvalidArgument, "--rpc_threads"));
  rpc::Registry twice;
  FillCounter(twice);
  FillCounter(twice);
  EXPECT_THAT(JoinCluster(By(*server, "alice", 1), std::move(twice)),
              Fails(StatusCode::kAlreadyExists, "registered twice"));
  EXPECT_THAT(rpc::ListWorkers(server->address(), "baton", 30s),
              Fails(StatusCode::kNotFound, "baton"));
}

TEST(Cluster, AListSaysTheRankAndTheNumberOfWorkers) {
  const auto fails = [](int rank, int world_size, const std::string& what) {
    rpc::ClusterOptions bob =
        InList("alice=127.0.0.1:1,bob=127.0.0.1:2", "bob");
    bob.rank = rank;
    bob.world_size = world_size;
    EXPECT_THAT(JoinNow(bob), Fails(StatusCode::kInvalidArgument, what));
  };
  fails(0, 0,
        "worker bob wants rank 0 (--rank), but the list of workers (--peers), "
        "whose order gives the ranks, gives it 1; leave --rank out");
  fails(-2, 0, "--rank");
  fails(1, 3,
        "worker bob waits for 3 workers (--world_size), but the list (--peers) "
        "has 2; leave --world_size out");
  fails(-1, rpc::kOneMore, "--extra");
}

TEST(Cluster, AListMayBeRepeatedInOtherWords) {
  const std::string peers =
      absl::StrCat("alice=", FreeAddress(), ",bob=", FreeAddress());
  rpc::ClusterOptions bob = InList(peers, "bob");
  bob.rank = 1;
  bob.world_size = 2;
  const Agents agents = Started(JoinAll({InList(peers, "alice"), bob}));
  ASSERT_EQ(agents.size(), 2u);
  ShutDown(agents);
}

TEST(Cluster, AListCanBeJoinedAgain) {
  const std::string peers =
      absl::StrCat("alice=", FreeAddress(), ",bob=", FreeAddress());
  for (int round = 0; round < 2; ++round) {
    const Agents agents =
        Started(JoinAll({InList(peers, "alice"), InList(peers, "bob")}));
    ASSERT_EQ(agents.size(), 2u) << "in round " << round;
    ExpectAllReachAll(agents);
    ShutDown(agents);
  }
}

TEST(Cluster, WhoLeavesAListIsNoLongerListed) {
  const std::string place = FreeAddress();
  const std::string peers =
      absl::StrCat("alice=", place, ",bob=", FreeAddress());
  Agents agents =
      Started(JoinAll({InList(peers, "alice"), InList(peers, "bob")}));
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_THAT(agents[1]->Shutdown({.timeout = 30s}), IsOk());
  const auto left = rpc::ListWorkers(place, "baton", 30s, {.name = "alice"});
  ASSERT_THAT(left, IsOk());
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().name, "alice");
}

TEST(Cluster, ADaemonServesOneTrainerAfterTheOther) {
  auto server = NewClusterServer();
  auto daemon = std::async(std::launch::async,
                           [&] { return JoinNow(By(*server, "daemon", 2)); });
  for (int run = 0; run < 3; ++run) {
    const Joined trainer = JoinNow(By(*server, "trainer", 2));
    ASSERT_THAT(trainer, IsOk()) << run;
    EXPECT_EQ(*(*trainer)->Async<&Sum>("daemon", 1, 2).Await(), 3);
    EXPECT_THAT((*trainer)->Shutdown({.timeout = 30s}), IsOk());
  }
  EXPECT_THAT(daemon.get(), IsOk());
}

TEST(Cluster, OneMoreJoinsAndLeavesWhileItRuns) {
  auto server = NewClusterServer();
  const Agents agents =
      Started(JoinAll({By(*server, "alice", 2), By(*server, "bob", 2)}));
  ASSERT_EQ(agents.size(), 2u);
  for (int run = 0; run < 2; ++run) {
    const Joined carol = JoinNow(By(*server, "carol", rpc::kOneMore));
    ASSERT_THAT(carol, IsOk()) << run;
    EXPECT_EQ((*carol)->self().rank, rpc::Rank{2});
    EXPECT_EQ(*(*carol)->Async<&Sum>("alice", 1, 2).Await(), 3);
    EXPECT_EQ(*agents[0]->Async<&Sum>("carol", 2, 3).Await(), 5);
    EXPECT_THAT((*carol)->Shutdown({.timeout = 30s}), IsOk());
  }
  EXPECT_EQ(*agents[0]->Async<&Sum>("bob", 1, 2).Await(), 3);
}

TEST(Cluster, ThoseWhoNeverSpokeAreForgottenWhenTheyLeave) {
  auto server = NewClusterServer();
  const Joined alice = JoinNow(By(*server, "alice", 1));
  ASSERT_THAT(alice, IsOk());
  for (int i = 0; i < 10; ++i) {
    const Joined extra =
        JoinNow(By(*server, absl::StrCat("extra", i), rpc::kOneMore));
    ASSERT_THAT(extra, IsOk());
    // Whoever joins is known by then.
    const auto found = (*alice)->Find(rpc::Rank{1});
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->name, absl::StrCat("extra", i));
    EXPECT_THAT((*extra)->Shutdown({.timeout = 30s}), IsOk());
    EXPECT_TRUE(Within(20s, [&] {
      return (*alice)->workers().size() == 1 &&
             (*alice)->GetDebugInfo().peers.empty();
    }));
  }
}

TEST(Cluster, AFullClusterTakesNobodyElse) {
  auto server = NewClusterServer();
  const Joined alice = JoinNow(By(*server, "alice", 1));
  ASSERT_THAT(alice, IsOk());
  EXPECT_THAT(JoinNow(By(*server, "alice", 1)),
              Fails(StatusCode::kAlreadyExists, "came too late or twice"));
}

TEST(Cluster, TwoWorkersOfOneNameBothHearOfIt) {
  auto server = NewClusterServer();
  for (const Joined& joined :
       JoinAll({By(*server, "alice", 2), By(*server, "alice", 2)})) {
    EXPECT_THAT(joined, Fails(StatusCode::kAlreadyExists, "alice"));
  }
}

TEST(Cluster, AMissingWorkerIsNamedWhenTheTimeIsUp) {
  auto server = NewClusterServer();
  EXPECT_THAT(WaitInVain(By(*server, "alice", 2)),
              Fails(StatusCode::kDeadlineExceeded, "missing: 1 more"));
  const std::string peers =
      absl::StrCat("alice=", FreeAddress(), ",bob=", FreeAddress());
  EXPECT_THAT(WaitInVain(InList(peers, "alice")),
              Fails(StatusCode::kDeadlineExceeded, "missing: bob"));
}

TEST(Cluster, AnotherClustersWorkersDoNotCount) {
  auto server = NewClusterServer();
  std::vector<rpc::ClusterOptions> all;
  for (const char* name : {"alice", "bob", "carol", "dave"}) {
    all.push_back(By(*server, name, 2));
    if (all.size() % 2 == 0) all.back().cluster = "theirs";
  }
  const Agents agents = Started(JoinAll(all));
  ASSERT_EQ(agents.size(), 4u);
  for (size_t i = 0; i < agents.size(); ++i) {
    EXPECT_EQ(agents[i]->workers().size(), 2u);
    const std::string& other = agents[(i + 2) % 4]->self().name;
    EXPECT_THAT(agents[i]->Find(other), IsOk());
  }
}

TEST(Cluster, AnotherBinaryIsRefusedByName) {
  auto server = NewClusterServer();
  auto other = std::async(std::launch::async, [&] {
    return JoinCluster(By(*server, "bob", 2), rpc::Registry());
  });
  const Joined alice = JoinNow(By(*server, "alice", 2));
  const Joined bob = other.get();
  ASSERT_THAT(alice, IsOk());
  ASSERT_THAT(bob, IsOk());
  EXPECT_THAT((*alice)->Async<&Sum>("bob", 1, 2).Await(),
              Fails(StatusCode::kFailedPrecondition, "different binary"));
}

TEST(Cluster, ABusyPortIsNamed) {
  auto server = NewClusterServer();
  rpc::ClusterOptions options = By(*server, "alice", 1);
  options.listen = server->address();
  EXPECT_THAT(JoinNow(options),
              Fails(StatusCode::kUnavailable, server->address()));
  EXPECT_THAT(JoinNow(options), Fails(StatusCode::kUnavailable, "in use"));
}

TEST(Cluster, ARendezvousThatIsNotThereIsNamed) {
  rpc::ClusterOptions options = By(*NewClusterServer(), "alice", 1);
  options.join_timeout = 200ms;
  EXPECT_THAT(JoinNow(options),
              Fails(StatusCode::kUnavailable, options.rendezvous));
}

TEST(Cluster, BadOptionsAreRefused) {
  auto server = NewClusterServer();
  EXPECT_THAT(JoinNow(By(*server, "", 1)),
              Fails(StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(JoinNow(InList("alice=127.0.0.1:1", "bob")),
              Fails(StatusCode::kInvalidArgument, "no 'bob'"));
  EXPECT_THAT(JoinNow(InList("alice", "alice")),
              Fails(StatusCode::kInvalidArgument, "name=host:port"));
}

}  // namespace
}  // namespace baton::testing
