// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tools/view/cluster_trace.h"

namespace baton::tools {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;

class TraceFile : public ::testing::Test {
 protected:
  TraceFile() {
    std::string name = ::testing::TempDir() + "baton_trace_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~TraceFile() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string folder_;
};

TEST_F(TraceFile, IsThereWholeAndAlone) {
  const std::string path = folder_ + "/trace.json";
  std::ofstream(path) << "an older one";
  EXPECT_THAT(CheckTracePath(path), IsOk());
  EXPECT_THAT(WriteTrace(path, {}), IsOk());
  std::ifstream in(path);
  const auto parsed = nlohmann::json::parse(in, nullptr, false);
  EXPECT_TRUE(parsed.contains("traceEvents"));
  EXPECT_THAT(Files(), ::testing::ElementsAre("trace.json"));
}

TEST_F(TraceFile, AFolderThatIsNotThereIsNamedBeforeThereIsATrace) {
  const std::string path = folder_ + "/none/trace.json";
  for (const absl::Status& status :
       {CheckTracePath(path), WriteTrace(path, {})}) {
    EXPECT_THAT(status, Fails(StatusCode::kUnavailable,
                              "none/trace.json: No such file or directory"));
  }
  EXPECT_THAT(CheckTracePath(folder_),
              Fails(StatusCode::kUnavailable, "Is a directory"));
}

TEST_F(TraceFile, AFullDiskIsNamed) {
  EXPECT_THAT(CheckTracePath("/dev/full"), IsOk());
  EXPECT_THAT(
      WriteTrace("/dev/full", {}),
      Fails(StatusCode::kUnavailable, "/dev/full: No space left on device"));
}

}  // namespace
}  // namespace baton::tools
