// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/jpeg.h"

#include <algorithm>
#include <cstdlib>

#include "core/safetensors.h"
#include "gtest/gtest.h"
#include "models/data/transforms.h"
#include "tests/models/data/made_files.h"
#include "tests/support/golden/golden_path.h"

namespace baton::data {
namespace {

std::string BytesOf(const Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.raw_data()),
                     static_cast<size_t>(tensor.numel()));
}

// The largest difference between an image [3, H, W] and pixels [H, W, 3].
int LargestDifference(const Tensor& image, const Tensor& pixels) {
  EXPECT_EQ(image.Permute({1, 2, 0}).shape(), pixels.shape());
  const auto a = image.Permute({1, 2, 0}).ToVector<uint8_t>();
  const auto b = pixels.ToVector<uint8_t>();
  int largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class PillowParity : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = ReadSafeTensors(testing::GoldenPath("images.safetensors"));
    ASSERT_TRUE(file.ok()) << file.status();
    golden_ = std::move(file->tensors);
  }
  std::map<std::string, Tensor> golden_;
};

TEST_F(PillowParity, DecodesColourGreyAndCmykAlike) {
  for (const std::string mode : {"RGB", "L", "CMYK"}) {
    SCOPED_TRACE(mode);
    auto image = DecodeJpeg(BytesOf(golden_.at(mode + ".jpeg")), mode);
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_LE(LargestDifference(*image, golden_.at(mode + ".pixels")),
              mode == "CMYK" ? 1 : 0);
  }
}

TEST_F(PillowParity, ResizesBitForBit) {
  const Tensor image = golden_.at("RGB.pixels").Permute({2, 0, 1});
  for (const auto& [height, width] :
       {std::pair{16, 20}, std::pair{11, 90}, std::pair{64, 80}}) {
    const std::string name =
        "resize." + std::to_string(height) + "x" + std::to_string(width);
    SCOPED_TRACE(name);
    EXPECT_EQ(
        LargestDifference(ResizeImage(image, height, width), golden_.at(name)),
        0);
  }
}

TEST(Jpeg, KeepsColoursThroughEncodingAndDecoding) {
  auto image = DecodeJpeg(FlatJpeg(9, 13, 200, 100, 50), "flat.jpg");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->shape(), Shape({3, 9, 13}));
  EXPECT_NEAR(At(*image, 0, 4, 6), 200, 2);
  EXPECT_NEAR(At(*image, 1, 0, 0), 100, 2);
  EXPECT_NEAR(At(*image, 2, 8, 12), 50, 2);
}

TEST(Jpeg, NamesTheFileThatIsNoJpegOrBreaksOff) {
  const std::string whole = FlatJpeg(64, 64, 1, 2, 3);
  const std::string cases[] = {"", "GIF89a not a jpeg", whole.substr(0, 20),
                               whole.substr(0, whole.size() - 40),
                               whole.substr(0, whole.size() / 2)};
  for (const std::string& bytes : cases) {
    auto image = DecodeJpeg(bytes, "cat.jpg");
    ASSERT_FALSE(image.ok()) << bytes.size();
    EXPECT_EQ(image.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(image.status().message().substr(0, 9), "cat.jpg: ");
  }
}

TEST(Jpeg, AnyDamagedFileGivesAnImageOrAStatus) {
  const std::string whole = FlatJpeg(24, 24, 90, 80, 70);
  SampleRandom random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 4; ++i)
      bytes[static_cast<size_t>(
          random.Below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(random.Below(256));
    auto image = DecodeJpeg(bytes, "damaged.jpg");
    if (image.ok()) {
      EXPECT_EQ(image->dim(0), 3);
    }
  }
}

TEST(Jpeg, EncodingRefusesWhatIsNoImage) {
  EXPECT_FALSE(EncodeJpeg(Tensor::Zeros({3, 4, 4})).ok());
  EXPECT_FALSE(
      EncodeJpeg(Tensor::Zeros({2, 4, 4}, {.dtype = DType::kU8})).ok());
  EXPECT_FALSE(
      EncodeJpeg(Tensor::Zeros({3, 4, 4}, {.dtype = DType::kU8}), 0).ok());
}

}  // namespace
}  // namespace baton::data
