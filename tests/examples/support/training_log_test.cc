// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/training_log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "examples/support/event.pb.h"
#include "examples/support/event_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

ABSL_DECLARE_FLAG(std::string, tensorboard);

namespace baton::examples {
namespace {

using testing::IsOk;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T Number(const std::string& bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

// As TensorBoard reads a file: a length, its checksum, an event, its checksum.
std::vector<Event> EventsOf(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<Event> events;
  for (size_t at = 0; at < bytes.size();) {
    const auto length = Number<uint64_t>(bytes, at);
    EXPECT_EQ(Number<uint32_t>(bytes, at + 8),
              MaskedCrc32c(bytes.substr(at, 8)));
    const std::string data = bytes.substr(at + 12, length);
    EXPECT_EQ(Number<uint32_t>(bytes, at + 12 + length), MaskedCrc32c(data));
    EXPECT_TRUE(events.emplace_back().ParseFromString(data));
    at += 16 + length;
  }
  return events;
}

std::map<std::string, float> ScalarsOf(const Event& event) {
  std::map<std::string, float> scalars;
  for (const Scalars::Value& value : event.summary().value())
    scalars[value.tag()] = value.simple_value();
  return scalars;
}

// The one file of a run's folder.
std::string FileIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1u) << folder;
  return files.empty() ? "" : files[0];
}

// RFC 3720 has these, unmasked.
TEST(EventFile, ChecksumsAreMaskedCrc32c) {
  const auto unmasked = [](const std::string& bytes) {
    const uint32_t rotated = MaskedCrc32c(bytes) - 0xa282ead8;
    return (rotated >> 17) | (rotated << 15);
  };
  EXPECT_EQ(unmasked("123456789"), 0xe3069283u);
  EXPECT_EQ(unmasked(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(unmasked(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(EventFile, BeginsWithItsVersionAndCanBeReadAfterEachStep) {
  const testing::TempFolder folder;
  const auto file = EventFile::Make(folder / "a/b");
  ASSERT_THAT(file, IsOk());
  EXPECT_NE((*file)->path().find("tfevents"), std::string::npos);
  ASSERT_THAT((*file)->Add(7, {{"loss", 0.5}, {"zero", 0}}), IsOk());
  const std::vector<Event> events = EventsOf((*file)->path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[1].wall_time(), 1.5e9);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(ScalarsOf(events[1]),
            (std::map<std::string, float>{{"loss", 0.5f}, {"zero", 0}}));
  EXPECT_TRUE(events[1].summary().value(1).has_simple_value());
}

TEST(EventFile, SaysWhereItCannotWrite) {
  const testing::TempFolder folder;
  const std::string file = folder.Write("file", "text");
  EXPECT_NE(
      std::string(EventFile::Make(file + "/a").status().message()).find(file),
      std::string::npos);
}

class TrainingLogTest : public ::testing::Test {
 protected:
  ~TrainingLogTest() override { absl::SetFlag(&FLAGS_tensorboard, ""); }
  const testing::TempFolder folder_;
};

TEST_F(TrainingLogTest, HasLossRateAndThroughputOfEachStep) {
  absl::SetFlag(&FLAGS_tensorboard, folder_ / "logs");
  TrainingLog log(
      "pipelined 20", "images",
      [](int64_t before) { return 0.5 / (1.0 + before); }, 3);
  log.Step(2, 100);
  log.Step(1, 100);
  const auto events = EventsOf(FileIn(folder_ / "logs/pipelined_20"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step(), 3);
  EXPECT_EQ(events[2].step(), 4);
  auto scalars = ScalarsOf(events[2]);
  EXPECT_EQ(scalars["loss"], 1);
  EXPECT_EQ(scalars["rate"], 0.125f);
  EXPECT_GT(scalars["images per second"], 0);
  log.Add(9, 0, {{"accuracy", 0.75}});
  EXPECT_EQ(ScalarsOf(EventsOf(FileIn(folder_ / "logs/pipelined_20")).back()),
            (std::map<std::string, float>{
                {"accuracy", 0.75f}, {"rate", static_cast<float>(0.5 / 9)}}));
}

TEST_F(TrainingLogTest, WritesNothingWithoutTheFlagAndGoesOnWhereItCannot) {
  const auto rate = [](int64_t) { return 1.0; };
  TrainingLog("none", "images", rate).Step(1, 1);
  absl::SetFlag(&FLAGS_tensorboard, folder_.Write("file", "text"));
  TrainingLog("none", "images", rate).Step(1, 1);
  EXPECT_EQ(ReadFile(folder_ / "file"), "text");
}

}  // namespace
}  // namespace baton::examples
