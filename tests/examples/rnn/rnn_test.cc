// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/distributed/context.h"
#include "core/random.h"
#include "examples/rnn/word_experiment.h"
#include "examples/rnn/word_text.h"
#include "examples/rnn/word_trainer.h"
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

// Sentences in which each word but the first tells the next one.
WordTexts Sentences() {
  const testing::TempFolder folder;
  const std::string sentences[] = {"the cat sat on a mat\n",
                                   "my dog ran to its home\n",
                                   "no bird flew over that hill\n"};
  Generator generator(7);
  std::string text;
  for (const int64_t number :
       RandInt(0, 3, {300}, generator).ToVector<int64_t>())
    text += sentences[number];
  const auto texts = ReadWords(folder.Write("text", text), "", 100);
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
    options.fill = RegisterWordModel;
    options.on_start = dist::Attach;
    cluster_ = std::make_unique<testing::LocalCluster>(options);
  }
  absl::StatusOr<WordResult> Train(WordTrainer& trainer) {
    return TrainOnWords(trainer, texts_, {.columns = 4, .length = 7},
                        [](double, int64_t) {});
  }
  absl::StatusOr<WordResult> TrainRemotely(const WordTraining& training) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<WordTrainer> trainer,
        MakeRemoteWordTrainer((*cluster_)["alice"], "bob", training));
    return Train(*trainer);
  }

  const WordTexts texts_ = Sentences();
  std::unique_ptr<testing::LocalCluster> cluster_;
};

TEST_F(WordModel, WithItsEndsAtAServerLearnsWhatOneProcessDoes) {
  const WordTraining training = SmallTraining(texts_);
  const auto single = Train(*MakeLocalWordTrainer(training));
  const auto remote = TrainRemotely(training);
  ASSERT_THAT(single, IsOk());
  ASSERT_THAT(remote, IsOk());
  EXPECT_EQ(remote->losses, single->losses);
  EXPECT_EQ(remote->perplexities, single->perplexities);
  // Only which of three sentences comes is not told: 3^(1/7) = 1.17 at best.
  EXPECT_GT(remote->losses.front(), 2.5);
  EXPECT_LT(remote->perplexities.back(), 1.6);
  cluster_->ExpectIdle();
}

TEST_F(WordModel, LimitsTheNormOfAllItsGradientsTogether) {
  WordTraining training = SmallTraining(texts_);
  training.optimizer = {.kind = "sgd", .lr = 1};
  training.clip_norm = 0.25;
  const auto single = Train(*MakeLocalWordTrainer(training));
  const auto remote = TrainRemotely(training);
  ASSERT_THAT(single, IsOk());
  ASSERT_THAT(remote, IsOk());
  // The parts' norms are added up in another order.
  EXPECT_NEAR(remote->perplexities.back(), single->perplexities.back(), 1e-3);
  cluster_->ExpectIdle();
}

TEST_F(WordModel, SaysWhichServerIsLost) {
  const auto trainer =
      MakeRemoteWordTrainer((*cluster_)["alice"], "bob", SmallTraining(texts_));
  ASSERT_THAT(trainer, IsOk());
  cluster_->Kill("bob");
  EXPECT_THAT(Train(**trainer), Fails(absl::StatusCode::kUnavailable, "bob"));
}

}  // namespace
}  // namespace baton::examples
