// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What the fuzzers begin with, and what they once broke something with, read
// again by the same functions in an ordinary build.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/log.h"
#include "rpc/transports/grpc_settings.h"
#include "tests/fuzz/targets.h"

namespace baton::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

// Inputs with something that must be refused; all others are good.
const std::set<std::string> kRefused = {
    "archive/lrzip",
    "call_proof/unknown",
    "certificates/expired",
    "message_ring/lengths",
    "message_ring/spoilt_0",
    "message_ring/spoilt_128",
    "shared_memory/released_twice",
    "shared_memory/tickets",
    "tcp/unasked",
    "words/bracket_in_brackets",
    "words/empty_brackets",
    "words/flags",
    "words/interface_alone_in_brackets",
    "words/targets",  // only what dials takes it, and that refuses nothing
};

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, IsReadWithoutHarmAndWhatIsBadIsRefused) {
  SetLogLevel(LogLevel::kError);
  rpc::TakeGrpcLog();
  const std::string target = GetParam().name;
  const std::filesystem::path folder =
      std::filesystem::path(BATON_FUZZ_CORPUS) / target;
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    SCOPED_TRACE(entry.path());
    const std::string whole = bytes.str();
    const std::string name = target + "/" + entry.path().filename().string();
    EXPECT_EQ(GetParam().run(whole), !kRefused.contains(name)) << name;
    // Cut off anywhere, it is no better.
    const size_t step = whole.size() / 64 + 1;
    for (size_t end = 0; end < whole.size(); end += step) {
      GetParam().run(whole.substr(0, end));
    }
    ++inputs;
  }
  EXPECT_GT(inputs, 0) << folder;
}

INSTANTIATE_TEST_SUITE_P(All, FuzzCorpus, ::testing::ValuesIn(Targets()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace baton::fuzz
