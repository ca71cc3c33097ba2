// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What the fuzzers begin with, and what they once broke something with, read
// again by the same functions in an ordinary build.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/log.h"
#include "rpc/transports/grpc_log.h"
#include "tests/fuzz/targets.h"

namespace baton::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

class FuzzCorpus : public testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, IsReadWithoutHarm) {
  SetLogLevel(LogLevel::kError);
  rpc::TakeGrpcLog();
  const std::filesystem::path folder =
      std::filesystem::path(BATON_FUZZ_CORPUS) / GetParam().name;
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    SCOPED_TRACE(entry.path());
    const std::string whole = bytes.str();
    GetParam().run(whole);
    // Cut off anywhere, it is no better.
    const size_t step = whole.size() / 64 + 1;
    for (size_t end = 0; end < whole.size(); end += step) {
      GetParam().run(whole.substr(0, end));
    }
    ++inputs;
  }
  EXPECT_GT(inputs, 0) << folder;
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, testing::ValuesIn(Targets()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::fuzz
