// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using std::chrono::seconds;
using testing::Fails;
using testing::IsOk;
using testing::ServerTest;
using testing::Within;

ServerOptions WithBackups() {
  ServerOptions options;
  options.mode = Consistency::kAsynchronous;
  options.backups = true;
  return options;
}

// The others are for when it is lost.
TEST_F(ServerTest, OnlyTheFirstDirectoryDecidesAndTheOthersKnow) {
  Make(WithBackups(), {{"x", Tensor::Zeros({8})}});
  const auto line =
      servers_->directory().Async<&ServerDirectory::Line>().Await();
  ASSERT_THAT(line, IsOk());
  ASSERT_EQ(line->size(), 3);
  const RRef<ServerDirectory>& second = (*line)[1];
  EXPECT_EQ(second.owner().name, "bob");
  // It hears of the shards from the first.
  EXPECT_TRUE(Within(seconds(20), [&] {
    return second.Async<&ServerDirectory::Locate>(0, 0).Await().ok();
  }));
  EXPECT_THAT(second.Async<&ServerDirectory::GoAlone>(0, 1).Await(),
              Fails(absl::StatusCode::kUnavailable, "alice has the directory"));
  EXPECT_EQ(
      *servers_->directory().Async<&ServerDirectory::GoAlone>(0, 1).Await(), 2);
  for (const RRef<ServerDirectory>& directory : *line) {
    const auto place = directory.Async<&ServerDirectory::Locate>(0, 1).Await();
    ASSERT_THAT(place, IsOk());
    EXPECT_EQ(place->epoch, 2);
    EXPECT_EQ(place->primary->owner().name, "bob");
  }
}

// What the first directory knows cannot be told if it names a lost worker.
TEST_F(ServerTest, ADirectoryThatHasNotHeardOfAShardVotesAndDecidesNothing) {
  Make(WithBackups(), {{"x", Tensor::Zeros({8})}});
  const RRef<ServerDirectory>& first = servers_->directory();
  const auto served = first.Async<&ServerDirectory::Served>().Await();
  ASSERT_THAT(served, IsOk());
  const auto made =
      rpc::Create<ServerDirectory>(cluster_.alice(), "dave", *served).Await();
  ASSERT_THAT(made, IsOk());
  const RRef<ServerDirectory>& voter = *made;
  const auto stand = [&](const DirectoryLine& line, int32_t place) {
    return voter.Async<&ServerDirectory::Stand>(line, place, int64_t{1});
  };
  const auto learn = [&](int32_t shard, int64_t decision) {
    const ServerDirectory::Decided decided{
        .number = decision, .replicas = {.primary = Primary(shard)}};
    return voter.Async<&ServerDirectory::Learn>(int64_t{1}, shard, decided);
  };
  const auto vote = [&](const std::vector<int64_t>& known) {
    return voter
        .Async<&ServerDirectory::Vote>(int64_t{1}, int32_t{0},
                                       std::vector<int32_t>{0, 1}, known)
        .Await();
  };
  ASSERT_THAT(stand({first, voter}, 1).Await(), IsOk());
  ASSERT_THAT(learn(0, 3).Await(), IsOk());
  EXPECT_THAT(vote({2, 5}),
              Fails(absl::StatusCode::kUnavailable, "lacks decisions"));
  EXPECT_THAT(vote({3, 5}), IsOk());

  ASSERT_THAT(stand({voter}, 0).Await(), IsOk());
  (void)learn(1, 4).Await();  // from one that knows less than was voted for
  EXPECT_THAT(voter.Async<&ServerDirectory::GoAlone>(1, 1).Await(),
              Fails(absl::StatusCode::kUnavailable, "has not heard"));
  EXPECT_THAT(voter.Async<&ServerDirectory::Locate>(1, 0).Await(),
              Fails(absl::StatusCode::kUnavailable, "has not heard"));
  ASSERT_THAT(learn(1, 5).Await(), IsOk());
  EXPECT_EQ(*voter.Async<&ServerDirectory::GoAlone>(1, 1).Await(), 2);
  // It holds itself.
  ASSERT_THAT(voter.Async<&ServerDirectory::Clear>().Await(), IsOk());
}

// As where ParameterServers::Make has failed meanwhile.
TEST_F(ServerTest, ADirectoryThatWasClearedDoesNotStandUpAnyMore) {
  Make(WithBackups(), {{"x", Tensor::Zeros({8})}});
  const RRef<ServerDirectory>& first = servers_->directory();
  const auto served = first.Async<&ServerDirectory::Served>().Await();
  ASSERT_THAT(served, IsOk());
  const auto late =
      rpc::Create<ServerDirectory>(cluster_.alice(), "dave", *served).Await();
  ASSERT_THAT(late, IsOk());
  ASSERT_THAT(late->Async<&ServerDirectory::Clear>().Await(), IsOk());
  ASSERT_THAT(late->Async<&ServerDirectory::Stand>(DirectoryLine{first, *late},
                                                   int32_t{1}, int64_t{1})
                  .Await(),
              IsOk());
  EXPECT_TRUE(late->Async<&ServerDirectory::Line>().Await()->empty());
}

TEST_F(ServerTest, TheFirstDirectoryReportsThatTooFewOthersKnowTheShards) {
  Make(WithBackups(), {{"x", Tensor::Zeros({8})}});
  rpc::Agent& alice = cluster_.alice();
  const auto served =
      servers_->directory().Async<&ServerDirectory::Served>().Await();
  ASSERT_THAT(served, IsOk());
  const auto first = ServerDirectory::MakeAt(alice, *served);
  DirectoryLine line = {RRef<ServerDirectory>::Make(alice, first)};
  for (const char* const server : {"bob", "carol"}) {
    auto made = rpc::Create<ServerDirectory>(alice, server, *served).Await();
    ASSERT_THAT(made, IsOk());
    line.push_back(*std::move(made));
  }
  const std::vector<ServerDirectory::Replicas> shards = {
      {.primary = Primary(0)}, {.primary = Primary(1)}};
  first->Stand(line, 0, 1);  // the others do not know that they are in a line
  EXPECT_THAT(first->Set(shards),
              Fails(absl::StatusCode::kUnavailable, "too few agree"));
  const auto stood =
      line[1].Async<&ServerDirectory::Stand>(line, int32_t{1}, int64_t{1});
  ASSERT_THAT(stood.Await(), IsOk());
  EXPECT_THAT(first->Set(shards), IsOk());
  EXPECT_THAT(line[1].Async<&ServerDirectory::Locate>(1, 0).Await(), IsOk());
  first->Close();
}

// A trainer's number names it at shards, whichever directory has given it.
TEST_F(ServerTest, DirectoriesGiveNoNumberTwice) {
  Make(WithBackups(), {{"x", Tensor::Zeros({8})}});
  const auto line =
      servers_->directory().Async<&ServerDirectory::Line>().Await();
  ASSERT_THAT(line, IsOk());
  std::set<TrainerId> numbers;
  for (int i = 0; i < 10; ++i)
    for (const RRef<ServerDirectory>& directory : *line)
      numbers.insert(*directory.Async<&ServerDirectory::NewTrainer>().Await());
  EXPECT_EQ(numbers.size(), 30);
}

}  // namespace
}  // namespace baton::dist
