// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/trainer_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

JournalEntry Entry(uint64_t trainer, int64_t step) {
  return {.training = 77,
          .trainer = trainer,
          .step = step,
          .state = {{"x", Tensor::Full({1}, static_cast<float>(step))}},
          .writer = absl::StrCat("worker t", trainer),
          .keepers = {"one", "two"}};
}

class TrainerJournalTest : public ::testing::Test {
 protected:
  TrainerJournal Open() { return *TrainerJournal::Open(folder_.path() + "/j"); }

  const testing::TempFolder folder_;
};

TEST_F(TrainerJournalTest, HasTheLastEntryAndTheOneThatIsNamed) {
  EXPECT_THAT(Open().found(), IsEmpty());
  for (const auto& [step, before] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {2, 0}, {3, 2}, {7, 2}})
    ASSERT_THAT(Open().Write(Entry(1, step), before), IsOk());
  const TrainerJournal journal = Open();
  ASSERT_THAT(journal.found(), SizeIs(2));
  EXPECT_EQ(journal.found()[0].step, 2);
  const JournalEntry& last = journal.found()[1];
  EXPECT_EQ(last.step, 7);
  EXPECT_EQ(last.training, 77u);
  EXPECT_EQ(last.trainer, 1u);
  EXPECT_EQ(last.state.at("x").Item(), 7);
  EXPECT_THAT(last.keepers, ElementsAre("one", "two"));
  ASSERT_THAT(journal.Clear(1), IsOk());
  EXPECT_THAT(Open().found(), IsEmpty());
}

TEST_F(TrainerJournalTest, AnEarlierTrainerIsRefused) {
  ASSERT_THAT(Open().Write(Entry(1, 8), 7), IsOk());
  EXPECT_THAT(Open().Check(1), IsOk());
  ASSERT_THAT(Open().Write(Entry(2, 8), 7), IsOk());
  const auto refused = Fails(StatusCode::kPermissionDenied, "worker t2 has");
  EXPECT_THAT(Open().Check(1), refused);
  EXPECT_THAT(Open().Write(Entry(1, 9), 8), refused);
  const TrainerJournal journal = Open();
  ASSERT_THAT(journal.found(), SizeIs(1));
  EXPECT_EQ(journal.found()[0].trainer, 2u);
  EXPECT_EQ(journal.found()[0].step, 8);
}

TEST_F(TrainerJournalTest, AnEarlierTrainersEndLeavesALaterOnesEntries) {
  ASSERT_THAT(Open().Write(Entry(1, 9), 8), IsOk());
  ASSERT_THAT(Open().Write(Entry(2, 8), 7), IsOk());
  ASSERT_THAT(Open().Clear(1), IsOk());
  const TrainerJournal journal = Open();
  ASSERT_THAT(journal.found(), SizeIs(1));
  EXPECT_EQ(journal.found()[0].trainer, 2u);
}

// The trainer before goes on while another one reads.
TEST_F(TrainerJournalTest, IsReadWhileItIsWritten) {
  const TrainerJournal journal = Open();
  ASSERT_THAT(journal.Write(Entry(1, 0), -1), IsOk());
  std::atomic<bool> over = false;
  std::thread before([&] {
    for (int64_t step = 1; step < 100; ++step)
      EXPECT_THAT(journal.Write(Entry(1, step), step - 1), IsOk());
    over = true;
  });
  while (!over) {
    const auto read = TrainerJournal::Open(folder_.path() + "/j");
    EXPECT_THAT(read, IsOk());
    EXPECT_FALSE(read.ok() && read->found().empty());
  }
  before.join();
}

TEST_F(TrainerJournalTest, OneTrainingBeginsWhereTwoTrainersFindNone) {
  const TrainerJournal one = Open(), other = Open();
  ASSERT_THAT(one.Begin(5), IsOk());
  ASSERT_THAT(other.Begin(6), IsOk());
  const TrainerJournal journal = Open();
  ASSERT_THAT(journal.found(), SizeIs(1));
  EXPECT_EQ(journal.found()[0].training, 5u);
  ASSERT_THAT(journal.Write(Entry(1, 0), -1), IsOk());
  ASSERT_THAT(Open().found(), SizeIs(1));
}

TEST_F(TrainerJournalTest, NamesAFileThatIsNoEntry) {
  ASSERT_THAT(Open().Write(Entry(1, 8), 7), IsOk());
  const std::string path = folder_.path() + "/j/trainer-1-step-9.safetensors";
  std::ofstream(path) << "nothing";
  EXPECT_THAT(TrainerJournal::Open(folder_.path() + "/j"),
              Fails(StatusCode::kDataLoss, "trainer-1-step-9"));
}

}  // namespace
}  // namespace baton::dist
