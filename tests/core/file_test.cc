// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton {
namespace {

using testing::IsOk;

TEST(FileWriter, WritesTheSameInPiecesOfAnySize) {
  const testing::TempFolder folder;
  const std::string path = folder / "file";
  std::mt19937 random(3);
  std::vector<uint32_t> data((size_t{21} << 18) + 5);  // 21 MB and a little
  for (uint32_t& value : data) value = random();
  const auto* const bytes = reinterpret_cast<const char*>(data.data());
  const size_t size = data.size() * sizeof(data[0]);
  ASSERT_THAT(ReplaceFile(path,
                          [&](FileWriter& writer) {
                            for (size_t at = 0; at < size;) {
                              const size_t piece = std::min<size_t>(
                                  size - at, random() % 9'000'000);
                              const absl::Status status =
                                  writer.Write(bytes + at, piece);
                              if (!status.ok()) return status;
                              at += piece;
                            }
                            return absl::OkStatus();
                          }),
              IsOk());
  const auto file = File::Open(path);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->Size().value(), size);
  std::vector<uint32_t> read(data.size());
  ASSERT_THAT(file->ReadAt(read.data(), size, 0), IsOk());
  EXPECT_EQ(read, data);
}

// What the disk says of a piece is told by a later call at the latest.
TEST(FileWriter, TellsOfAFullDisk) {
  for (const size_t bytes : {size_t{100}, size_t{30} << 20}) {
    const File full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    ASSERT_GE(full.descriptor(), 0);
    FileWriter writer(full);
    const std::vector<char> data(bytes);
    absl::Status status = writer.Write(data.data(), data.size());
    if (status.ok()) status = writer.Flush();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

}  // namespace
}  // namespace baton
