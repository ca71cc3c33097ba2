// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A language model over worker processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_files.h"
#include "tests/tools/programs/run_program.h"

namespace baton::tools {
namespace {

using ::testing::HasSubstr;

class TransformerPipeline : public ::testing::Test {
 protected:
  TransformerPipeline() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the cat sat on the mat, ";
    folder_.Write("text/1.txt", text);
    folder_.Write("text/2.txt", text);
  }
  // Under baton-run with two workers of one core each, as oneDNN's sums depend
  // on how many there are.
  Outcome Run(std::vector<std::string> flags) {
    flags.insert(
        flags.begin(),
        {"baton-run", "--workers=2", "--cores_per_worker=1", "--",
         testing::ProgramPath("transformer_pipeline"),
         "--text=" + folder_ / "text", "--context=16", "--width=16",
         "--layers=2", "--heads=2", "--batch=4", "--steps=5", "--lr=0.01"});
    return RunProgram(flags);
  }
  // By variant.
  std::map<std::string, nlohmann::json> Measured(
      std::vector<std::string> flags) {
    flags.push_back("--json=" + folder_ / "results.jsonl");
    const Outcome outcome = Run(std::move(flags));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("tokens/s"));
    std::map<std::string, nlohmann::json> lines;
    std::ifstream file(folder_ / "results.jsonl");
    for (std::string text; std::getline(file, text);) {
      const auto line = nlohmann::json::parse(text);
      lines[line["variant"]] = line;
    }
    return lines;
  }

  const baton::testing::TempFolder folder_;
};

TEST_F(TransformerPipeline, LearnsAsOneProcessDoes) {
  const auto lines =
      Measured({"--notied", "--variants=single,pipelined", "--split_size=4,2"});
  ASSERT_EQ(lines.size(), 3u);
  const auto losses = lines.at("single")["losses"].get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 5u);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(lines.at("pipelined 4")["losses"], losses);
  // Micro-batches add their gradients up, which rounds in other places.
  EXPECT_THAT(lines.at("pipelined 2")["losses"].get<std::vector<double>>(),
              ::testing::Pointwise(::testing::DoubleNear(1e-5), losses));
  EXPECT_EQ(lines.at("pipelined 2")["cuts"], "blocks.1");
  EXPECT_GT(lines.at("pipelined 2")["tokens_per_s"], 0);
}

// Where embedding and head are one weight, each stage adds its own gradients up
// before the two meet.
TEST_F(TransformerPipeline, TiesTheEnds) {
  const auto lines = Measured({"--variants=single,pipelined", "--stages=3",
                               "--schedule=1f1b", "--split_size=2"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines.at("pipelined 2")["cuts"], "blocks.0,blocks.1");
  EXPECT_THAT(lines.at("pipelined 2")["losses"].get<std::vector<double>>(),
              ::testing::Pointwise(
                  ::testing::DoubleNear(1e-5),
                  lines.at("single")["losses"].get<std::vector<double>>()));
}

TEST_F(TransformerPipeline, LocalHasAllStagesInOneWorker) {
  const auto lines = Measured({"--variants=pipelined,local", "--split_size=2",
                               "--require_path=grpc,window"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines.at("local 2")["losses"], lines.at("pipelined 2")["losses"]);
  const auto& local = lines.at("local 2")["paths"];
  EXPECT_EQ(local, nlohmann::json::parse(
                       R"([{"from": 0, "to": 1, "path": "local"}])"));
  EXPECT_NE(lines.at("pipelined 2")["paths"][0]["path"], "local");
}

TEST_F(TransformerPipeline, SaysWhatIsWrong) {
  const auto wrong = [&](const std::string& flag, const std::string& text) {
    const Outcome outcome = Run({flag});
    EXPECT_NE(outcome.code, 0) << flag;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << flag;
  };
  wrong("--text=/no/such/folder", "/no/such/folder");
  wrong("--stages=4", "--stages is 4, but the model's 2 blocks and its head");
  wrong("--cuts=blocks.1,blocks.0", "blocks.0");
  wrong("--dtype=bf16", "--dtype");
  wrong("--variants=pipelined,nonsense", "--variants takes single");
  wrong("--require_path=pigeon", "--require_path takes window");
  wrong("--require_path=tcp", "the link from stage 0 (worker1) to stage 1");
}

}  // namespace
}  // namespace baton::tools
