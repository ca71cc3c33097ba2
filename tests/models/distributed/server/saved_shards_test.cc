// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/saved_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/test_files.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using ::testing::ElementsAre;
using testing::Fails;
using testing::IsOk;
using testing::ServerTest;

ServerOptions SavedOptions() {
  ServerOptions options;
  options.mode = Consistency::kAsynchronous;
  options.rule = ops::AdamRule{.lr = 0.1};
  options.part_bytes = 256;
  options.backups = true;
  const auto table = [](const char* name, int64_t limit) {
    return RowTableOptions{.name = name,
                           .width = 3,
                           .start = RowStart::kNormal,
                           .scale = 1,
                           .seed = 7,
                           .limit = limit,
                           .rule = ops::AdagradRule{.lr = 0.1}};
  };
  options.tables = {table("words", 0), table("few.words", 1000),
                    table("fixed", 0)};
  options.tables[2].rows = 50;
  return options;
}

class SavedShardsTest : public ServerTest {
 protected:
  SavedShardsTest() {
    Generator generator(5);
    values_ = {{"conv", RandNormal({4, 3, 5, 5}, generator)},
               {"fc.bias", RandNormal({7}, generator)}};
  }
  // The same for one number, whoever pushes it.
  void Push(ServerClient& client, uint64_t number) {
    Generator generator(number);
    Trade trade{.gradients = Gradients(generator)};
    for (const int32_t table : {0, 1, 2}) {
      const auto first = static_cast<int64_t>(number);
      trade.row_gradients.push_back(
          {.table = table,
           .keys = Tensor::From<int64_t>({first, 2 * first, 40}),
           .gradients = RandNormal({3, 3}, generator)});
    }
    ASSERT_THAT(client.Do(std::move(trade)).Await(), IsOk());
  }
  std::vector<std::vector<float>> All(ServerClient& client) {
    std::vector<std::vector<float>> all;
    for (const Tensor& tensor : Read(client))
      all.push_back(tensor.ToVector<float>());
    for (const int32_t table : {0, 1, 2}) {
      std::vector<int64_t> keys(50);
      for (size_t i = 0; i < keys.size(); ++i)
        keys[i] = static_cast<int64_t>(i);
      const auto rows = client.PullRows(table, Tensor::From(keys)).Await();
      EXPECT_THAT(rows, IsOk());
      all.push_back(rows->ToVector<float>());
    }
    return all;
  }
  absl::Status Resume(const std::vector<std::string>& servers,
                      const ServerOptions& options,
                      IfBroken if_broken = IfBroken::kFail) {
    auto resumed = ParameterServers::Resume(cluster_.alice(), servers, options,
                                            values_, folder_.path(), if_broken);
    if (!resumed.ok()) return resumed.status();
    servers_ = std::move(resumed->servers);
    testing::DirectoryToGive() = servers_->directory();
    step_ = resumed->step;
    trainer_ = resumed->trainer;
    return absl::OkStatus();
  }
  const testing::TempFolder folder_;
  int64_t step_ = 0;
  NamedTensors trainer_;
};

TEST_F(SavedShardsTest, GoOnWithTheSameBitsOnAnyNumberOfServers) {
  Make(SavedOptions(), values_, {"bob", "carol", "dave"});
  std::vector<std::vector<float>> expected;
  {
    const auto client = Join(0);
    for (uint64_t number = 1; number <= 4; ++number) Push(*client, number);
    ASSERT_THAT(servers_->Save({.folder = folder_.path()}, 4,
                               {{"epoch", Tensor::From<int64_t>({9})}}),
                IsOk());
    for (uint64_t number = 5; number <= 8; ++number) Push(*client, number);
    expected = All(*client);
  }
  for (const std::vector<std::string>& servers :
       std::vector<std::vector<std::string>>{
           {"bob", "carol"}, {"bob", "carol", "dave"}, {"dave"}}) {
    ServerOptions options = SavedOptions();
    options.backups = servers.size() > 1;
    ASSERT_THAT(Resume(servers, options), IsOk());
    EXPECT_EQ(step_, 4);
    EXPECT_THAT(trainer_.at("epoch").ToVector<int64_t>(), ElementsAre(9));
    const auto client = Join(0);
    EXPECT_EQ(ReportOf(0).version, 4);
    for (uint64_t number = 5; number <= 8; ++number) Push(*client, number);
    EXPECT_EQ(All(*client), expected);
    EXPECT_EQ(ReportOf(0).version, 8);
  }
  // What was read is at the backups, too.
  ASSERT_THAT(Resume({"bob", "carol"}, SavedOptions()), IsOk());
  const auto client = Join(0);
  cluster_.Kill("bob");
  for (uint64_t number = 5; number <= 8; ++number) Push(*client, number);
  EXPECT_EQ(All(*client), expected);
}

TEST_F(SavedShardsTest, AreWholeWhileTrainersPush) {
  ServerOptions options = SavedOptions();
  options.rule = ops::SgdRule{.lr = 1};
  Make(options, {{"x", Tensor::Zeros({300})}});
  std::atomic<bool> over{false};
  testing::RunBeside(
      {[&] {
         const auto client = Join(0);
         while (!over) {
           ASSERT_THAT(client->Push(Filled(-1)).Await(), IsOk());
         }
       },
       [&] {
         EXPECT_TRUE(testing::Within(std::chrono::seconds(20),
                                     [&] { return ReportOf(0).version > 3; }));
         EXPECT_THAT(servers_->Save({.folder = folder_.path()}, 1), IsOk());
         over = true;
       }});
  ASSERT_THAT(Resume({"dave"},
                     [&] {
                       ServerOptions alone = options;
                       alone.backups = false;
                       return alone;
                     }()),
              IsOk());
  const auto checkpoint = Checkpoint::Open(folder_.path(), 1);
  ASSERT_THAT(checkpoint, IsOk());
  const auto versions = checkpoint->Read({"servers.versions"});
  ASSERT_THAT(versions, IsOk());
  // Each push added one: the elements of a shard are its version.
  std::set<float> seen;
  for (const float x : Read(*Join(std::nullopt))[0].ToVector<float>())
    seen.insert(x);
  std::set<float> saved;
  for (const int64_t version :
       versions->at("servers.versions").ToVector<int64_t>())
    saved.insert(static_cast<float>(version));
  EXPECT_EQ(seen, saved);
}

TEST_F(SavedShardsTest, OfOtherTablesRulesOrKeysAreRefused) {
  Make(SavedOptions(), values_);
  Push(*Join(0), 1);
  ASSERT_THAT(servers_->Save({.folder = folder_.path()}, 1), IsOk());
  ServerOptions options = SavedOptions();
  options.tables[0].rule = ops::AdamRule{};
  EXPECT_THAT(Resume({"bob", "carol"}, options),
              Fails(absl::StatusCode::kInvalidArgument, "table words"));
  options = SavedOptions();
  options.tables[0].name = "images";
  EXPECT_THAT(Resume({"bob", "carol"}, options),
              Fails(absl::StatusCode::kNotFound, "images"));
  options = SavedOptions();
  options.rule = ops::AdagradRule{};
  EXPECT_THAT(Resume({"bob", "carol"}, options),
              Fails(absl::StatusCode::kNotFound, "sum"));
  values_[1].second = Tensor::Zeros({8});
  EXPECT_THAT(Resume({"bob", "carol"}, SavedOptions()),
              Fails(absl::StatusCode::kInvalidArgument, "fc.bias"));
}

}  // namespace
}  // namespace baton::dist
