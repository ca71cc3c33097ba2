// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/loader.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/mutex.h"
#include "gtest/gtest.h"
#include "models/data/synthetic.h"

namespace baton::data {
namespace {

// Sample i is a 1 x 2 x 2 image of the value i with the label i.
class Counting final : public Dataset {
 public:
  explicit Counting(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  absl::StatusOr<Sample> Get(int64_t index) const override {
    if (index == broken) return absl::DataLossError("sample.jpg: broken");
    const int64_t side = index == odd ? 3 : 2;
    {
      MutexLock lock(mutex_);
      ++gets_;
      changed_.NotifyAll();
    }
    return Sample{
        .image = Tensor::Full({1, side, side}, static_cast<double>(index)),
        .label = index};
  }
  std::string Describe(int64_t index) const override {
    return "sample " + std::to_string(index);
  }
  const std::vector<std::string>& classes() const override { return classes_; }

  int64_t broken = -1;  // fails
  int64_t odd = -1;     // is of another size
  // Whether `count` samples were read before `time` had passed.
  bool AwaitGets(int count, std::chrono::milliseconds time) const {
    const auto deadline = std::chrono::steady_clock::now() + time;
    MutexLock lock(mutex_);
    while (gets_ < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return gets_ >= count;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable int gets_ ABSL_GUARDED_BY(mutex_) = 0;
  const int64_t size_;
  const std::vector<std::string> classes_;
};

std::vector<int64_t> LabelsOfEpoch(Loader& loader, int64_t epoch) {
  loader.StartEpoch(epoch);
  std::vector<int64_t> all;
  for (;;) {
    auto batch = loader.Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok() || !*batch) return all;
    const auto labels = (*batch)->labels.ToVector<int64_t>();
    all.insert(all.end(), labels.begin(), labels.end());
  }
}

std::unique_ptr<Loader> MakeLoader(std::shared_ptr<const Dataset> set,
                                   LoaderOptions options) {
  auto loader = Loader::Make(std::move(set), std::move(options));
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

TEST(Loader, GivesEverySampleOnceInOrder) {
  auto loader =
      MakeLoader(std::make_shared<Counting>(10), {.batch = 4, .workers = 3});
  EXPECT_EQ(loader->batches(), 3);
  std::vector<int64_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(LabelsOfEpoch(*loader, 0), expected);
  EXPECT_EQ(LabelsOfEpoch(*loader, 1), expected);
}

TEST(Loader, BatchesAreChannelsLastWithImagesBesideTheirLabels) {
  auto loader = MakeLoader(std::make_shared<Counting>(5), {.batch = 2});
  for (int64_t b = 0; b < 3; ++b) {
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok() && *batch);
    EXPECT_EQ((*batch)->images.shape(), Shape({b == 2 ? 1 : 2, 1, 2, 2}));
    EXPECT_TRUE((*batch)->images.IsContiguous(MemoryFormat::kChannelsLast));
    for (int64_t i = 0; i < (*batch)->size(); ++i) {
      EXPECT_EQ((*batch)->images.Select(0, i).ToVector<float>()[3],
                static_cast<float>(2 * b + i));
    }
  }
  EXPECT_EQ(*loader->Next(), std::nullopt);
}

TEST(Loader, DropLastLeavesOutTheRaggedBatch) {
  auto loader = MakeLoader(std::make_shared<Counting>(10),
                           {.batch = 4, .drop_last = true});
  EXPECT_EQ(loader->batches(), 2);
  EXPECT_EQ(loader->samples(), 8);
  EXPECT_EQ(LabelsOfEpoch(*loader, 0).size(), 8U);
}

TEST(Loader, OrderAndRandomTransformsAreTheSameForAnyNumberOfWorkers) {
  const auto set = std::make_shared<Synthetic>(
      SyntheticOptions{.size = 37, .height = 6, .width = 6, .classes = 50});
  std::vector<float> first;
  for (const int workers : {0, 1, 4}) {
    auto loader = MakeLoader(set, {.batch = 5,
                                   .shuffle = true,
                                   .seed = 9,
                                   .workers = workers,
                                   .transform = RandomHorizontalFlip()});
    loader->StartEpoch(2);
    std::vector<float> pixels;
    for (auto batch = loader->Next(); *batch; batch = loader->Next()) {
      const auto more = (*batch)->images.ToVector<float>();
      pixels.insert(pixels.end(), more.begin(), more.end());
    }
    if (workers == 0) first = pixels;
    EXPECT_EQ(pixels, first) << workers;
  }
}

TEST(Loader, ShufflesDifferentlyEachEpochAndSeedButLosesNothing) {
  const auto set = std::make_shared<Counting>(100);
  auto loader = MakeLoader(set, {.batch = 7, .shuffle = true});
  auto other = MakeLoader(set, {.batch = 7, .shuffle = true, .seed = 1});
  const auto zero = LabelsOfEpoch(*loader, 0);
  const auto one = LabelsOfEpoch(*loader, 1);
  EXPECT_NE(zero, one);
  EXPECT_NE(zero, LabelsOfEpoch(*other, 0));
  EXPECT_EQ(zero, LabelsOfEpoch(*loader, 0));
  std::vector<int64_t> sorted = one;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(Loader, AnEpochMayBeLeftEarly) {
  auto loader = MakeLoader(std::make_shared<Counting>(64),
                           {.batch = 2, .workers = 3, .prefetch = 8});
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    loader->StartEpoch(epoch);
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok() && *batch);
    EXPECT_EQ((*batch)->labels.ToVector<int64_t>(),
              std::vector<int64_t>({0, 1}));
  }
}

TEST(Loader, WorkersGoToThePrefetchLimitAndNoFurther) {
  const auto set = std::make_shared<Counting>(1000);
  auto loader = MakeLoader(set, {.batch = 10, .workers = 4, .prefetch = 3});
  for (int taken = 0; taken < 5; ++taken) {
    const int most = 10 * (taken + 3);
    EXPECT_TRUE(set->AwaitGets(most, std::chrono::seconds(10)));
    EXPECT_FALSE(set->AwaitGets(most + 1, std::chrono::milliseconds(50)));
    ASSERT_TRUE(loader->Next().ok());
  }
}

TEST(Loader, ABrokenSampleFailsItsBatchAndIsNamed) {
  for (const int workers : {0, 2}) {
    const auto set = std::make_shared<Counting>(6);
    set->broken = 3;
    auto loader = MakeLoader(set, {.batch = 2, .workers = workers});
    EXPECT_TRUE(loader->Next().ok());
    const auto second = loader->Next();
    EXPECT_EQ(second.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_NE(second.status().ToString().find("sample.jpg"), std::string::npos);
    auto third = loader->Next();
    ASSERT_TRUE(third.ok() && *third);
    EXPECT_EQ((*third)->labels.ToVector<int64_t>()[0], 4);
  }
}

TEST(Loader, AnImageOfAnotherSizeIsNamed) {
  const auto set = std::make_shared<Counting>(4);
  set->odd = 1;
  auto loader = MakeLoader(set, {.batch = 4});
  const std::string text = loader->Next().status().ToString();
  EXPECT_NE(text.find("sample 1"), std::string::npos) << text;
  EXPECT_NE(text.find("resize"), std::string::npos) << text;
}

TEST(Loader, WhatATransformThrowsBecomesAStatusWithTheSample) {
  auto loader = MakeLoader(std::make_shared<Counting>(4),
                           {.batch = 4, .transform = CenterCrop(9, 9)});
  const std::string text = loader->Next().status().ToString();
  EXPECT_NE(text.find("sample 0: [center_crop]"), std::string::npos) << text;
}

TEST(Loader, RefusesOptionsThatMakeNoSense) {
  const auto set = std::make_shared<Counting>(4);
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Loader::Make(nullptr, {}).status().code(), code);
  EXPECT_EQ(Loader::Make(std::make_shared<Counting>(0), {}).status().code(),
            code);
  EXPECT_EQ(Loader::Make(set, {.batch = 0}).status().code(), code);
  EXPECT_EQ(Loader::Make(set, {.workers = -1}).status().code(), code);
  EXPECT_EQ(Loader::Make(set, {.prefetch = 0}).status().code(), code);
  EXPECT_EQ(Loader::Make(set, {.batch = 5, .drop_last = true}).status().code(),
            code);
}

// For threads that make batches ahead, and without.
TEST(Loader, GoesOnWhereAnotherOneWas) {
  for (const int workers : {0, 2}) {
    const auto data = std::make_shared<Counting>(10);
    const LoaderOptions options{
        .batch = 3, .shuffle = true, .seed = 5, .workers = workers};
    const auto first = *Loader::Make(data, options);
    const std::vector<int64_t> whole = LabelsOfEpoch(*first, 2);
    first->StartEpoch(2);
    ASSERT_TRUE(first->Next().ok());
    ASSERT_TRUE(first->Next().ok());
    const auto state = first->ExportState();

    const auto resumed = *Loader::Make(data, options);
    ASSERT_TRUE(resumed->ImportState(state).ok());
    EXPECT_EQ(resumed->epoch(), 2);
    EXPECT_EQ(resumed->batch(), 2);
    std::vector<int64_t> rest;
    for (;;) {
      const auto batch = resumed->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (!*batch) break;
      const auto labels = (*batch)->labels.ToVector<int64_t>();
      rest.insert(rest.end(), labels.begin(), labels.end());
    }
    EXPECT_EQ(rest, std::vector<int64_t>(whole.begin() + 6, whole.end()));

    LoaderOptions others = options;
    others.batch = 5;
    const auto misfit = *Loader::Make(data, others);
    EXPECT_TRUE(absl::IsInvalidArgument(misfit->ImportState(state)));
    EXPECT_TRUE(absl::IsInvalidArgument(resumed->ImportState({})));
  }
}

}  // namespace
}  // namespace baton::data
