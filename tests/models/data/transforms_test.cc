// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/transforms.h"

#include <cmath>
#include <set>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/models/data/made_files.h"

namespace baton::data {
namespace {

// Pixel values name their place: 10 y + x, in every channel.
Tensor Numbered(int64_t height, int64_t width) {
  return MakeImage(height, width,
                   [](int64_t, int64_t y, int64_t x) { return 10 * y + x; });
}

TEST(Transforms, CenterCropTakesTheMiddle) {
  SampleRandom random(0);
  const Tensor crop = CenterCrop(2, 4)(Numbered(6, 8), random);
  EXPECT_EQ(crop.shape(), Shape({3, 2, 4}));
  EXPECT_EQ(At(crop, 0, 0, 0), 22);
  EXPECT_EQ(At(crop, 2, 1, 3), 35);
}

TEST(Transforms, CropsLargerThanTheImageAreErrorsThatSayWhatToDo) {
  SampleRandom random(0);
  for (const Transform& crop : {CenterCrop(7, 7), RandomCrop(7, 7)}) {
    try {
      crop(Numbered(6, 8), random);
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("resize it first"),
                std::string::npos);
    }
  }
}

TEST(Transforms, RandomCropReachesEveryPlaceAndPadsWithBlack) {
  SampleRandom random(3);
  std::set<int> corners;
  for (int i = 0; i < 400; ++i) {
    const Tensor crop = RandomCrop(4, 4, 1)(Numbered(4, 4), random);
    ASSERT_EQ(crop.shape(), Shape({3, 4, 4}));
    corners.insert(At(crop, 0, 1, 1));
  }
  // The pixel at (1, 1) of the crop comes from (0..2, 0..2) of the image.
  EXPECT_EQ(corners, std::set<int>({0, 1, 2, 10, 11, 12, 20, 21, 22}));
  const Tensor border = RandomCrop(6, 6, 1)(Numbered(4, 4), random);
  EXPECT_EQ(At(border, 0, 0, 3), 0);
  EXPECT_EQ(At(border, 0, 4, 4), 33);
}

TEST(Transforms, RandomResizedCropIsOfTheSizeAskedForAndOfTheImage) {
  SampleRandom random(5);
  for (const auto& [height, width] :
       {std::pair{40, 60}, std::pair{3, 200}, std::pair{200, 3}}) {
    const Tensor image = MakeImage(
        height, width, [](int64_t c, int64_t, int64_t) { return 50 + c; });
    for (int i = 0; i < 20; ++i) {
      const Tensor crop = RandomResizedCrop(8, 9)(image, random);
      ASSERT_EQ(crop.shape(), Shape({3, 8, 9}));
      EXPECT_EQ(At(crop, 2, 7, 8), 52);
    }
  }
}

TEST(Transforms, HorizontalFlipMirrorsRows) {
  SampleRandom random(0);
  const Tensor flipped = RandomHorizontalFlip(1)(Numbered(2, 5), random);
  EXPECT_EQ(At(flipped, 0, 0, 0), 4);
  EXPECT_EQ(At(flipped, 1, 1, 4), 10);
  const Tensor kept = RandomHorizontalFlip(0)(Numbered(2, 5), random);
  EXPECT_EQ(At(kept, 0, 0, 0), 0);
}

TEST(Transforms, HorizontalFlipHappensAsOftenAsAsked) {
  SampleRandom random(0);
  int flips = 0;
  for (int i = 0; i < 1000; ++i)
    flips += At(RandomHorizontalFlip(0.3)(Numbered(1, 2), random), 0, 0, 0);
  EXPECT_NEAR(flips, 300, 60);
}

TEST(Transforms, NormalizeCountsFromZeroToOne) {
  SampleRandom random(0);
  const Tensor image = MakeImage(
      2, 2, [](int64_t c, int64_t, int64_t) { return c == 0 ? 255 : 51 * c; });
  const Transform normalize = Normalize({0.5f, 0.2f, 0.f}, {0.25f, 1.f, 2.f});
  const Tensor x = normalize(image, random);
  EXPECT_EQ(x.dtype(), DType::kF32);
  EXPECT_FLOAT_EQ(x.Select(0, 0).ToVector<float>()[3], 2.f);
  EXPECT_NEAR(x.Select(0, 1).ToVector<float>()[0], 0.f, 1e-6);
  EXPECT_FLOAT_EQ(x.Select(0, 2).ToVector<float>()[1], 0.2f);
  // The same from floats.
  const Tensor y = normalize(ToFloat()(image, random), random);
  EXPECT_NEAR(y.Select(0, 0).ToVector<float>()[3], 2.f, 1e-5);
}

TEST(Transforms, ResultsLieAsRowsOfPixels) {
  SampleRandom random(0);
  const Tensor x = CifarTraining()(Numbered(32, 32), random);
  EXPECT_EQ(x.shape(), Shape({3, 32, 32}));
  EXPECT_TRUE(x.Permute({1, 2, 0}).IsContiguous());
}

TEST(Transforms, ResizeShorterKeepsTheShape) {
  SampleRandom random(0);
  EXPECT_EQ(ResizeShorter(8)(Numbered(4, 6), random).shape(),
            Shape({3, 8, 12}));
  EXPECT_EQ(ResizeShorter(4)(Numbered(12, 8), random).shape(),
            Shape({3, 6, 4}));
}

TEST(Transforms, ResizingFlatImagesChangesNothing) {
  const Tensor image =
      MakeImage(7, 5, [](int64_t c, int64_t, int64_t) { return 80 * c + 95; });
  for (const int64_t size : {1, 3, 5, 11, 64}) {
    const Tensor resized = ResizeImage(image, size, size + 1);
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(At(resized, c, size - 1, size), 80 * c + 95) << size;
    }
  }
}

TEST(Transforms, RefuseFloatsWhereBytesAreNeededAndOddRanks) {
  SampleRandom random(0);
  EXPECT_THROW(Resize(2, 2)(Tensor::Zeros({3, 4, 4}), random), Error);
  EXPECT_THROW(ResizeShorter(2)(Tensor::Zeros({3, 4, 4}), random), Error);
  EXPECT_THROW(ToFloat()(Tensor::Zeros({4, 4}), random), Error);
  EXPECT_THROW(Normalize({0.f}, {0.f}), Error);
  EXPECT_THROW(Normalize({0.f}, {1.f})(Numbered(2, 2), random), Error);
}

}  // namespace
}  // namespace baton::data
