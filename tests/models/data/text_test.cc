// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/arithmetic.h"
#include "tests/support/test_files.h"

namespace baton::data {
namespace {

using Ids = std::vector<int64_t>;

TEST(ByteText, GivesWindowsAndWhatFollows) {
  const ByteText text("abcdefg\xff");
  EXPECT_EQ(text.size(), 8);
  EXPECT_EQ(text.windows(3), 2);
  EXPECT_EQ(text.windows(7), 1);
  EXPECT_EQ(text.windows(8), 0);
  const TokenBatch batch = text.Windows(0, 2, 3);
  EXPECT_EQ(batch.ids.shape(), Shape({2, 3}));
  EXPECT_EQ(batch.ids.ToVector<int64_t>(), (Ids{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(batch.targets.ToVector<int64_t>(),
            (Ids{'b', 'c', 'd', 'e', 'f', 'g'}));
  EXPECT_EQ(text.Windows(0, 1, 7).targets.ToVector<int64_t>().back(), 255);
  EXPECT_THROW(text.Windows(1, 2, 3), Error);
}

TEST(ByteText, DrawsWindowsThatBeginAnywhere) {
  const ByteText text("0123456789");
  Generator generator(1), same(1);
  const TokenBatch batch = text.Draw(200, 4, generator);
  std::vector<int> seen(10, 0);
  const Ids ids = batch.ids.ToVector<int64_t>();
  const Ids targets = batch.targets.ToVector<int64_t>();
  for (size_t n = 0; n < 200; ++n) {
    ++seen[static_cast<size_t>(ids[4 * n] - '0')];
    for (size_t t = 0; t < 4; ++t) {
      EXPECT_EQ(ids[4 * n + t], ids[4 * n] + static_cast<int64_t>(t));
      EXPECT_EQ(targets[4 * n + t], ids[4 * n + t] + 1);
    }
  }
  for (size_t start = 0; start < 6; ++start) EXPECT_GT(seen[start], 10);
  EXPECT_EQ(seen[6], 0);
  EXPECT_TRUE(ops::BitEqual(batch.ids, text.Draw(200, 4, same).ids));
  EXPECT_THROW(text.Draw(1, 10, generator), Error);
  EXPECT_EQ(text.Draw(3, 9, generator).ids.ToVector<int64_t>()[0], '0');
}

TEST(ByteText, PartsAreTextsOfTheirOwn) {
  const ByteText part = ByteText("abcdefgh").Part(2, 5);
  EXPECT_EQ(part.size(), 3);
  EXPECT_EQ(part.Windows(0, 1, 2).ids.ToVector<int64_t>(), (Ids{'c', 'd'}));
  EXPECT_THROW(part.Part(1, 4), Error);
}

TEST(ByteText, ReadsAFileAndNamesOneThatIsNotThere) {
  const baton::testing::TempFolder folder;
  const auto text = ByteText::Read(folder.Write("text.txt", "word"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->Windows(0, 1, 3).targets.ToVector<int64_t>(),
            (Ids{'o', 'r', 'd'}));
  const auto missing = ByteText::Read("/nowhere/text.txt");
  EXPECT_THAT(missing.status().ToString(),
              ::testing::HasSubstr("/nowhere/text.txt"));
}

TEST(ByteText, ReadsTheFilesOfAFolderByTheirNames) {
  const baton::testing::TempFolder folder;
  folder.Write("books/b.txt", "second");
  folder.Write("books/a.txt", "first ");
  folder.Write("books/more/c.txt", "not a file of the folder itself");
  const auto text = ByteText::Read(folder / "books");
  ASSERT_TRUE(text.ok()) << text.status();
  const Ids ids = text->Windows(0, 1, text->size() - 1).ids.ToVector<int64_t>();
  EXPECT_EQ(std::string(ids.begin(), ids.end()), "first secon");
  std::filesystem::create_directory(folder / "empty");
  const auto empty = ByteText::Read(folder / "empty");
  EXPECT_TRUE(absl::IsNotFound(empty.status())) << empty.status();
  EXPECT_THAT(empty.status().ToString(),
              ::testing::HasSubstr("empty is a folder without files"));
}

}  // namespace
}  // namespace baton::data
