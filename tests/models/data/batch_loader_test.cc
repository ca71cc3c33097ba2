// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "models/data/loader.h"
#include "models/data/synthetic.h"
#include "tests/support/error_of.h"
#include "tests/support/test_device.h"

namespace baton::data {
namespace {

using ::baton::test::ErrorOf;
using ::baton::test::TestDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A sequence of i + 1 times the number i, and its number.
absl::StatusOr<Tensors> Sequence(int64_t i) {
  return Tensors{Tensor::Full({i + 1, 2}, static_cast<double>(i)),
                 Tensor::Scalar(static_cast<double>(i), DType::kI64)};
}

absl::StatusOr<Tensors> Number(int64_t i) {
  return Tensors{Tensor::Scalar(static_cast<double>(i), DType::kI64)};
}

std::shared_ptr<const BatchSampler> InOrder(int64_t size, int64_t batch) {
  return std::make_shared<FixedBatches>(
      std::make_shared<SequentialSampler>(size), batch);
}

std::shared_ptr<const BatchSampler> Shuffled(int64_t size, int64_t batch,
                                             uint64_t seed = 4) {
  return std::make_shared<FixedBatches>(
      std::make_shared<RandomSampler>(size, RandomSamplerOptions{.seed = seed}),
      batch);
}

std::unique_ptr<BatchLoader> MakeBatchLoader(
    std::shared_ptr<const BatchSampler> sampler, MakeBatch make,
    const BatchLoaderOptions& options = {}) {
  auto loader = BatchLoader::Make(std::move(sampler), std::move(make), options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

// The batches that are left, as lists of the last tensor's numbers.
std::vector<std::vector<int64_t>> Rest(BatchLoader& loader) {
  std::vector<std::vector<int64_t>> all;
  for (;;) {
    auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok() || !*batch) return all;
    all.push_back((*batch)->back().ToVector<int64_t>());
  }
}

TEST(Collate, StacksSamples) {
  const auto batch = Stacked()({*Number(3), *Number(5)});
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->size(), 1U);
  EXPECT_THAT((*batch)[0].ToVector<int64_t>(), ElementsAre(3, 5));
  const auto misfit = Stacked()({*Sequence(0), *Sequence(1)});
  EXPECT_THAT(misfit.status().ToString(),
              HasSubstr("tensor 0 of sample 1, f32[2, 2], does not go into a "
                        "batch of f32[1, 2]"));
  EXPECT_THAT(Stacked()({*Number(0), *Sequence(1)}).status().ToString(),
              HasSubstr("sample 1 of a batch has 2 tensors"));
}

TEST(Collate, PadsSequencesAndTellsTheirLengths) {
  const auto batch = Padded(-1)({*Sequence(2), *Sequence(0)});
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->size(), 3U);
  EXPECT_EQ((*batch)[0].shape(), Shape({2, 3, 2}));
  EXPECT_THAT((*batch)[0].ToVector<float>(),
              ElementsAre(2, 2, 2, 2, 2, 2, 0, 0, -1, -1, -1, -1));
  EXPECT_THAT((*batch)[1].ToVector<int64_t>(), ElementsAre(2, 0));
  EXPECT_THAT((*batch)[2].ToVector<int64_t>(), ElementsAre(3, 1));
  EXPECT_THAT(ErrorOf([] {
                PadSequences({Tensor::Ones({2, 3}), Tensor::Ones({2, 4})});
              }),
              HasSubstr("[pad_sequences]"));
}

TEST(BatchLoader, MakesBatchesWithAUsersCollate) {
  for (const int workers : {0, 3}) {
    auto loader = MakeBatchLoader(
        InOrder(5, 2),
        FromSamples(
            Number,
            [](const std::vector<Tensors>& samples) -> absl::StatusOr<Tensors> {
              int64_t sum = 0;
              for (const Tensors& sample : samples)
                sum += static_cast<int64_t>(sample[0].Item());
              return Tensors{Tensor::From<int64_t>({sum})};
            }),
        {.workers = workers});
    EXPECT_THAT(Rest(*loader),
                ElementsAre(ElementsAre(1), ElementsAre(5), ElementsAre(4)));
  }
}

// The whole of an epoch, and the rest of it behind any place, are the same.
TEST(BatchLoader, GoesOnAtAnyPlaceOfAnEpoch) {
  const std::vector<std::shared_ptr<const BatchSampler>> samplers = {
      Shuffled(11, 3),
      std::make_shared<FixedBatches>(std::make_shared<WeightedSampler>(
                                         std::vector<double>{1, 2, 3, 4},
                                         WeightedSamplerOptions{.samples = 9}),
                                     2),
      std::make_shared<FixedBatches>(
          std::make_shared<DistributedSampler>(
              11, DistributedSamplerOptions{.ranks = 2, .rank = 1, .seed = 3}),
          2)};
  for (const auto& sampler : samplers) {
    for (const int workers : {0, 2}) {
      const BatchLoaderOptions options{.workers = workers, .prefetch = 2};
      auto whole = MakeBatchLoader(sampler, FromSamples(Number), options);
      whole->StartEpoch(6);
      const auto all = Rest(*whole);
      for (int64_t place = 0; place <= whole->batches(); ++place) {
        auto stopped = MakeBatchLoader(sampler, FromSamples(Number), options);
        stopped->StartEpoch(6);
        for (int64_t i = 0; i < place; ++i) ASSERT_TRUE(stopped->Next().ok());
        const auto state = stopped->ExportState();
        auto resumed = MakeBatchLoader(sampler, FromSamples(Number), options);
        ASSERT_TRUE(resumed->ImportState(state).ok());
        EXPECT_EQ(resumed->epoch(), 6);
        EXPECT_EQ(resumed->batch(), place);
        EXPECT_EQ(Rest(*resumed), std::vector<std::vector<int64_t>>(
                                      all.begin() + place, all.end()));
        // And the next epoch is that of one which was never stopped.
        resumed->StartEpoch(7);
        whole->StartEpoch(7);
        EXPECT_EQ(Rest(*resumed), Rest(*whole));
      }
    }
  }
}

TEST(BatchLoader, RefusesTheStateOfAnotherOrder) {
  auto loader = MakeBatchLoader(Shuffled(8, 2), FromSamples(Number));
  ASSERT_TRUE(loader->Next().ok());
  const auto state = loader->ExportState();
  for (const auto& other :
       {Shuffled(8, 2, 5), Shuffled(8, 4), Shuffled(9, 2), InOrder(8, 2)}) {
    auto misfit = MakeBatchLoader(other, FromSamples(Number));
    const absl::Status status = misfit->ImportState(state);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("order"));
    EXPECT_EQ(misfit->batch(), 0);
  }
}

// Batches by the length of sequences, as a user may want them.
class ByParity final : public BatchSampler {
 public:
  int64_t batches() const override { return 2; }
  std::vector<std::vector<int64_t>> Batches(int64_t epoch) const override {
    return {{0, 2, 4}, {1, 3 + 2 * (epoch % 2)}};
  }
  std::vector<int64_t> Identity() const override { return {77}; }
};

TEST(BatchLoader, TakesAUsersBatchSampler) {
  auto loader =
      MakeBatchLoader(std::make_shared<ByParity>(), FromSamples(Number));
  EXPECT_THAT(Rest(*loader),
              ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3)));
  loader->StartEpoch(1);
  EXPECT_THAT(Rest(*loader),
              ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 5)));
}

TEST(BatchLoader, PassesOverABatchThatFailed) {
  for (const int workers : {0, 2}) {
    auto loader = MakeBatchLoader(
        InOrder(6, 2), FromSamples([](int64_t i) -> absl::StatusOr<Tensors> {
          if (i == 3) return absl::DataLossError("line 3 is broken");
          return Number(i);
        }),
        {.workers = workers});
    ASSERT_TRUE(loader->Next().ok());
    EXPECT_THAT(loader->Next().status().ToString(), HasSubstr("line 3"));
    EXPECT_THAT(Rest(*loader), ElementsAre(ElementsAre(4, 5)));
  }
}

TEST(BatchLoader, RefusesOptionsThatMakeNoSense) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const auto make = FromSamples(Number);
  EXPECT_EQ(BatchLoader::Make(nullptr, make).status().code(), code);
  EXPECT_EQ(BatchLoader::Make(InOrder(4, 2), nullptr).status().code(), code);
  EXPECT_EQ(
      BatchLoader::Make(InOrder(4, 2), make, {.workers = -1}).status().code(),
      code);
  EXPECT_EQ(
      BatchLoader::Make(InOrder(4, 2), make, {.prefetch = 0}).status().code(),
      code);
}

// On a GPU from pinned memory, by the copies' stream, while others are made.
TEST(BatchLoader, GivesBatchesOnTheDeviceInOrder) {
  for (const int workers : {0, 1, 3}) {
    auto loader = MakeBatchLoader(
        InOrder(40, 2), FromSamples([](int64_t i) -> absl::StatusOr<Tensors> {
          return Tensors{Tensor::Full({64, 65}, static_cast<double>(i)),
                         Tensor::Scalar(static_cast<double>(i), DType::kI64)};
        }),
        {.workers = workers, .prefetch = 3, .device = TestDevice()});
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      loader->StartEpoch(epoch);
      // Left early, so that what is on its way is dropped.
      const int64_t batches = epoch == 1 ? 5 : 20;
      for (int64_t b = 0; b < batches; ++b) {
        auto batch = loader->Next();
        ASSERT_TRUE(batch.ok() && *batch) << batch.status();
        EXPECT_EQ((**batch)[0].device(), TestDevice());
        EXPECT_EQ((**batch)[1].device(), TestDevice());
        // Read on this thread's stream, without a word of synchronisation.
        const Tensor sums = ops::Sum((**batch)[0], {1, 2});
        const auto first = static_cast<float>(2 * b * 64 * 65);
        EXPECT_THAT(sums.ToVector<float>(),
                    ElementsAre(first, first + 64 * 65));
        EXPECT_THAT((**batch)[1].ToVector<int64_t>(),
                    ElementsAre(2 * b, 2 * b + 1));
      }
    }
  }
}

TEST(BatchLoader, LoadersOfImagesGiveThemOnTheDevice) {
  const auto set = std::make_shared<Synthetic>(
      SyntheticOptions{.size = 12, .height = 5, .width = 7, .classes = 3});
  auto here = Loader::Make(set, {.batch = 4, .shuffle = true});
  auto there =
      Loader::Make(set, {.batch = 4, .shuffle = true, .device = TestDevice()});
  ASSERT_TRUE(here.ok() && there.ok());
  for (int i = 0; i < 3; ++i) {
    const auto a = (*here)->Next(), b = (*there)->Next();
    ASSERT_TRUE(a.ok() && *a && b.ok() && *b);
    EXPECT_EQ((*b)->images.device(), TestDevice());
    EXPECT_TRUE((*b)->images.IsContiguous(MemoryFormat::kChannelsLast));
    EXPECT_TRUE(ops::BitEqual((*a)->images, (*b)->images.To(Device::Cpu())));
    EXPECT_EQ((*a)->labels.ToVector<int64_t>(),
              (*b)->labels.ToVector<int64_t>());
  }
}

TEST(BatchLoader, LoadersOfImagesTakeASampler) {
  const auto set = std::make_shared<Synthetic>(
      SyntheticOptions{.size = 10, .height = 2, .width = 2, .classes = 1000});
  auto whole = Loader::Make(set, {.batch = 10});
  ASSERT_TRUE(whole.ok());
  const auto labels = (**(*whole)->Next()).labels.ToVector<int64_t>();
  const auto share = std::make_shared<DistributedSampler>(
      10, DistributedSamplerOptions{.ranks = 3, .rank = 2, .shuffle = false});
  auto loader = Loader::Make(set, {.batch = 2, .sampler = share});
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ((*loader)->samples(), 4);
  std::vector<int64_t> seen;
  for (auto batch = (*loader)->Next(); *batch; batch = (*loader)->Next()) {
    const auto more = (*batch)->labels.ToVector<int64_t>();
    seen.insert(seen.end(), more.begin(), more.end());
  }
  EXPECT_THAT(seen, ElementsAre(labels[2], labels[5], labels[8], labels[1]));
  auto wrong =
      Loader::Make(set, {.sampler = std::make_shared<SequentialSampler>(11)});
  ASSERT_TRUE(wrong.ok());
  EXPECT_THAT((*wrong)->Next().status().ToString(), HasSubstr("sample 10"));
}

}  // namespace
}  // namespace baton::data
