// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/conv_tuning.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/conv_choices.h"
#include "core/precision.h"
#include "tests/core/ops/conv_cases.h"
#include "tests/support/test_files.h"

namespace baton::ops {
namespace {

using ::baton::testing::CheckConv;
using ::baton::testing::ConvCase;
using ::baton::testing::TempFolder;

const ConvCase kThreeByThree = {
    "three by three", {2, 32, 10, 10}, {32, 32, 3, 3}, {.padding = {1, 1}}};
const ConvCase kStem = {"stem",
                        {1, 3, 32, 32},
                        {16, 3, 7, 7},
                        {.stride = {2, 2}, .padding = {3, 3}}};

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(ConvTuning, ASearchFindsPlansThatGiveTheSame) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    for (const ConvCase& c : {kThreeByThree, kStem}) {
      CheckConv(c, dtype, MemoryFormat::kChannelsLast, true);  // searches
      CheckConv(c, dtype, MemoryFormat::kChannelsLast, true);
    }
  }
}

TEST(ConvTuning, Tf32RoundsOperandsOfF32Alone) {
  AllowTf32(true);
  CheckConv(kThreeByThree, DType::kF64, MemoryFormat::kChannelsLast, true);
  const Tensor x = test::Put(testing::Numbers(kThreeByThree.x, DType::kF32, 1,
                                              MemoryFormat::kChannelsLast));
  const Tensor weight = test::Put(testing::Numbers(
      kThreeByThree.weight, DType::kF32, 2, MemoryFormat::kChannelsLast));
  const Tensor rounded = Conv2d(x, weight, {}, kThreeByThree.options);
  AllowTf32(false);
  testing::ExpectNear(
      rounded, testing::Array4(Conv2d(x, weight, {}, kThreeByThree.options)),
      2e-3, "tf32");
}

TEST(ConvTuning, AWorkspaceLimitLeavesSomethingToRun) {
  const int64_t before = ConvWorkspaceLimit();
  SetConvWorkspaceLimit(0);
  CheckConv({"limited", {3, 8, 9, 9}, {8, 8, 3, 3}, {}}, DType::kF32,
            MemoryFormat::kChannelsLast, true);
  SetConvWorkspaceLimit(before);
}

// Files hold choices of GPUs alone.
TEST(ConvTuning, ASearchIsWrittenToTheFileOnce) {
  const TempFolder folder;
  const std::string path = folder / "choices";
  SetConvCacheFile(path);
  const Tensor x = test::Put(Tensor::Ones({2, 24, 5, 5}));
  const Tensor weight = test::Put(Tensor::Ones({16, 24, 1, 1}));
  for (int i = 0; i < 2; ++i) Conv2d(x, weight, {}, {});
  SetConvCacheFile("");
  std::vector<std::string> lines = LinesOf(path);
  ASSERT_EQ(lines.size(), test::TestDevice().is_cuda() ? 2u : 1u);
  EXPECT_EQ(lines[0], ConvChoices::kHeading);
  EXPECT_EQ(lines.back().find("x2,24,5,5 w16,24,1,1") != std::string::npos,
            test::TestDevice().is_cuda());
}

TEST(ConvTuning, AChoiceThatDoesNotFitIsSearchedAgain) {
  const TempFolder folder;
  SetConvCacheFile(folder / "choices");
  const Tensor weight = test::Put(Tensor::Ones({16, 24, 1, 1}));
  Conv2d(test::Put(Tensor::Ones({3, 24, 5, 5})), weight, {}, {});
  std::vector<std::string> lines = LinesOf(folder / "choices");
  std::string text = lines.at(0) + "\n";
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string key = lines[i].substr(0, lines[i].find('\t'));
    text += absl::StrReplaceAll(key, {{" x3,", " x7,"}, {" y3,", " y7,"}}) +
            "\t99999\t\n";
  }
  SetConvCacheFile(folder.Write("other", text));
  const Tensor y =
      Conv2d(test::Put(Tensor::Ones({7, 24, 5, 5})), weight, {}, {});
  SetConvCacheFile("");
  EXPECT_EQ(y.ToVector<float>(), std::vector<float>(7 * 16 * 25, 24.0f));
  lines = LinesOf(folder / "other");
  EXPECT_EQ(lines.size(), test::TestDevice().is_cuda() ? 3u : 1u);
}

}  // namespace
}  // namespace baton::ops
