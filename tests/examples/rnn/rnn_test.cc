// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/rnn/word_experiment.h"
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
#include "models/distributed/stock.h"
#include "tests/examples/rnn/sentences.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

using testing::Fails;
using testing::IsOk;
using Numbers = std::vector<int64_t>;

TEST(Vocabulary, CountsWordsAndEndsOfLines) {
  const Vocabulary vocabulary("b a b\nb  c a\n", 10);
  EXPECT_EQ(vocabulary.size(), 5);  // b, <eos>, a, c, <unk>
  EXPECT_EQ(vocabulary.NumbersOf("b\n").ToVector<int64_t>()[0], 0);
  const Numbers numbers =
      vocabulary.NumbersOf("c new\n<unk> b").ToVector<int64_t>();
  ASSERT_EQ(numbers.size(), 6u);
  EXPECT_EQ(numbers[1], numbers[3]);  // what is not known
  EXPECT_EQ(numbers[2], numbers[5]);  // the end of a line
  EXPECT_EQ(numbers[4], 0);
  EXPECT_NE(numbers[0], numbers[1]);
}

TEST(Vocabulary, KeepsTheMostFrequentWords) {
  const Vocabulary vocabulary("a a a b b c\n", 3);
  EXPECT_EQ(vocabulary.size(), 3);  // a, b, <unk>
  EXPECT_EQ(vocabulary.NumbersOf("a b c d").ToVector<int64_t>(),
            (Numbers{0, 1, 2, 2, 2}));
}

TEST(TextColumns, AreReadSideBySide) {
  const TextColumns columns(Tensor::Arange(11), 2);  // 0 .. 4 and 5 .. 9
  ASSERT_EQ(columns.pieces(3), 2);
  const data::TokenBatch first = columns.Piece(0, 3),
                         last = columns.Piece(1, 3);
  EXPECT_EQ(first.ids.shape(), Shape({3, 2}));
  EXPECT_EQ(first.ids.ToVector<int64_t>(), (Numbers{0, 5, 1, 6, 2, 7}));
  EXPECT_EQ(first.targets.ToVector<int64_t>(), (Numbers{1, 6, 2, 7, 3, 8}));
  EXPECT_EQ(last.ids.ToVector<int64_t>(), (Numbers{3, 8}));
  EXPECT_EQ(last.targets.ToVector<int64_t>(), (Numbers{4, 9}));
}

TEST(ReadWords, NamesTheFileThatIsNotThere) {
  EXPECT_THAT(ReadWords("/nowhere.txt", "", 10),
              Fails(absl::StatusCode::kNotFound, "/nowhere.txt"));
}

WordTexts SomeTexts() {
  const testing::TempFolder folder;
  const auto texts =
      ReadWords(folder.Write("text", testing::Sentences(300)), "", 100);
  EXPECT_THAT(texts, IsOk());
  return *texts;
}

WordTraining SmallTraining(const WordTexts& texts) {
  WordTraining training;
  training.model = {.vocabulary = texts.vocabulary,
                    .width = 16,
                    .layers = 2,
                    .dropout = 0.1,
                    .seed = 3};
  training.optimizer = {.kind = "adam", .lr = 0.02};
  return training;
}

class WordModel : public ::testing::Test {
 protected:
  WordModel() {
    testing::ClusterOptions options;
    options.fill = [](rpc::Registry& registry) {
      dist::RegisterStock(registry);
      RegisterWordModel(registry);
    };
    options.names = {"alice", "bob", "carol"};
    options.on_start = dist::AttachStock;
    cluster_ = std::make_unique<testing::LocalCluster>(options);
  }
  // All in this process, or with its ends at the first worker that is left.
  absl::StatusOr<WordResult> TrainHere(const WordTraining& training) {
    return TrainOnWords([&] { return MakeLocalWordTrainer(training); }, texts_,
                        reading_, {}, [](double, int64_t) {});
  }
  absl::StatusOr<WordResult> TrainRemotely(
      const WordTraining& training, const Saving& saving = {},
      const std::function<void()>& on_step = [] {}) {
    RemoteWordTrainers trainers((*cluster_)["alice"], training);
    return TrainOnWords([&] { return trainers.MakeNext(); }, texts_, reading_,
                        saving, [&](double, int64_t) { on_step(); });
  }

  const Reading reading_ = {.columns = 4, .length = 7};
  const WordTexts texts_ = SomeTexts();
  std::unique_ptr<testing::LocalCluster> cluster_;
};

TEST_F(WordModel, WithItsEndsAtAServerLearnsWhatOneProcessDoes) {
  const WordTraining training = SmallTraining(texts_);
  const auto single = TrainHere(training);
  const auto remote = TrainRemotely(training);
  ASSERT_THAT(single, IsOk());
  ASSERT_THAT(remote, IsOk());
  EXPECT_EQ(remote->losses, single->losses);
  EXPECT_EQ(remote->perplexities, single->perplexities);
  EXPECT_GT(remote->losses.front(), 2.5);
  EXPECT_LT(remote->perplexities.back(), 1.6);
  cluster_->ExpectIdle();
}

TEST_F(WordModel, LimitsTheNormOfAllItsGradientsTogether) {
  WordTraining training = SmallTraining(texts_);
  training.optimizer = {.kind = "sgd", .lr = 1};
  training.clip_norm = 0.25;
  const auto single = TrainHere(training);
  const auto remote = TrainRemotely(training);
  ASSERT_THAT(single, IsOk());
  ASSERT_THAT(remote, IsOk());
  // The parts' norms are added up in another order.
  EXPECT_NEAR(remote->perplexities.back(), single->perplexities.back(), 1e-3);
  cluster_->ExpectIdle();
}

// At another worker, and with the bits of a training that lost none.
TEST_F(WordModel, GoesOnWhereItWasSavedWhenItsServerIsLost) {
  const testing::TempFolder folder;
  const WordTraining training = SmallTraining(texts_);
  Saving saving;
  saving.checkpoints.folder = folder.path();
  saving.every = 5;
  int64_t steps = 0, steps_in_all = 0;
  const auto remote = TrainRemotely(training, saving, [&] {
    ++steps_in_all;
    if (++steps == 23) cluster_->Kill("bob");
  });
  ASSERT_THAT(remote, IsOk());
  EXPECT_EQ(remote->lost, 1);
  EXPECT_EQ(remote->resumed_from, 0);
  // The save of step 20 may not have been written yet.
  const auto counted = static_cast<int64_t>(remote->losses.size());
  EXPECT_GE(steps_in_all, counted + 3);
  EXPECT_LE(steps_in_all, counted + 8);
  const auto single = TrainHere(training);
  ASSERT_THAT(single, IsOk());
  EXPECT_EQ(remote->losses, single->losses);
  EXPECT_EQ(remote->perplexities, single->perplexities);
}

TEST_F(WordModel, BeginsAgainWhereNothingIsSaved) {
  const WordTraining training = SmallTraining(texts_);
  int64_t steps = 0;
  const auto remote = TrainRemotely(training, {}, [&] {
    if (++steps == 6) cluster_->Kill("bob");
  });
  const auto single = TrainHere(training);
  ASSERT_THAT(remote, IsOk());
  ASSERT_THAT(single, IsOk());
  EXPECT_EQ(steps, 6 + static_cast<int64_t>(remote->losses.size()));
  EXPECT_EQ(remote->losses, single->losses);
}

TEST_F(WordModel, WaitsForAWorkerToComeWhenNoneIsLeft) {
  int64_t steps = 0;
  std::thread starter;
  cluster_->Kill("carol");
  const auto remote = TrainRemotely(SmallTraining(texts_), {}, [&] {
    if (++steps != 3) return;
    cluster_->Kill("bob");
    starter = std::thread([&] { cluster_->Restart("carol"); });
  });
  starter.join();
  ASSERT_THAT(remote, IsOk());
  EXPECT_EQ(remote->lost, 1);
}

TEST_F(WordModel, SaysThatNoServerIsThere) {
  (*cluster_)["alice"].set_default_timeout(std::chrono::milliseconds(50));
  cluster_->Kill("bob");
  cluster_->Kill("carol");
  EXPECT_THAT(TrainRemotely(SmallTraining(texts_)),
              Fails(absl::StatusCode::kUnavailable, "no worker"));
}

}  // namespace
}  // namespace baton::examples
