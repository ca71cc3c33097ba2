// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/output_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

ABSL_FLAG(std::string, report_of_test, "", "a file that nobody writes");

namespace baton::tools {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using testing::Fails;
using ::testing::IsEmpty;
using testing::IsOk;

class OutputFile : public ::testing::Test {
 protected:
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }
  const testing::TempFolder folder_;
};

TEST_F(OutputFile, IsThereWholeAndAlone) {
  const std::string path = folder_ / "report.json";
  std::ofstream(path) << "an older and longer one";
  EXPECT_THAT(CheckOutput(path), IsOk());
  EXPECT_THAT(WriteOutput(path, "a new one"), IsOk());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "a new one");
  EXPECT_THAT(Files(), ElementsAre("report.json"));
}

TEST_F(OutputFile, ACheckLeavesNothing) {
  EXPECT_THAT(CheckOutput(folder_ / "report.json"), IsOk());
  EXPECT_THAT(CheckOutputFolder(folder_ / "a/b"), IsOk());
  EXPECT_THAT(Files(), ElementsAre("a"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "a/b"));
  EXPECT_THAT(CheckOutput(""), IsOk()) << "no file is asked for";
}

TEST_F(OutputFile, AFolderThatIsNotThereIsNamedBeforeTheWork) {
  const std::string path = folder_ / "none/report.json";
  for (const absl::Status& status :
       {CheckOutput(path), WriteOutput(path, "text")}) {
    EXPECT_THAT(status, Fails(StatusCode::kUnavailable,
                              "none/report.json: No such file or directory"));
  }
  EXPECT_THAT(CheckOutput(folder_ / "."),
              Fails(StatusCode::kUnavailable, "Is a directory"));
  EXPECT_THAT(CheckOutputFolder("/proc/no"),
              Fails(StatusCode::kUnavailable, "cannot make /proc/no: "));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(OutputFile, ADeviceStaysOne) {
  EXPECT_THAT(CheckOutput("/dev/full"), IsOk());
  EXPECT_THAT(
      WriteOutput("/dev/full", "text"),
      Fails(StatusCode::kUnavailable, "/dev/full: No space left on device"));
  EXPECT_FALSE(std::filesystem::exists("/dev/full.part"));
}

TEST_F(OutputFile, AFlagIsNamed) {
  EXPECT_THAT(CheckOutputs(FLAGS_report_of_test), IsOk());
  absl::SetFlag(&FLAGS_report_of_test, folder_ / "none/report.json");
  EXPECT_THAT(
      CheckOutputs(FLAGS_report_of_test),
      Fails(StatusCode::kInvalidArgument, "--report_of_test: cannot write "));
  absl::SetFlag(&FLAGS_report_of_test, "");
}

}  // namespace
}  // namespace baton::tools
