// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/tensor.h"
#include "models/distributed/pipeline.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/within.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::Within;

rpc::TensorChannelInfo Channel(const std::string& peer, const std::string& name,
                               bool open, uint64_t bytes) {
  rpc::TensorChannelInfo channel;
  channel.peer = peer;
  channel.name = name;
  channel.open = open;
  channel.bytes_sent = bytes;
  return channel;
}

TEST(PathTo, IsTheChannelThatCarriedMostAndElseTheTransport) {
  rpc::DebugInfo worker;
  EXPECT_EQ(PathTo("carol", worker), "none");
  worker.channels.resize(1);
  worker.channels[0].peer = "carol";
  worker.channels[0].name = "grpc";
  EXPECT_EQ(PathTo("carol", worker), "none");
  worker.channels[0].up = true;
  worker.tensor_channels = {Channel("dave", "shared memory", true, 9),
                            Channel("carol", "shared memory", true, 0),
                            Channel("carol", "CUDA IPC", false, 9)};
  EXPECT_EQ(PathTo("carol", worker), "grpc");
  worker.tensor_channels.push_back(Channel("carol", "TCP", true, 3));
  EXPECT_EQ(PathTo("carol", worker), "tcp");
  worker.tensor_channels[1].bytes_sent = 4;
  EXPECT_EQ(PathTo("carol", worker), "shared memory");
}

void AddLinkTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<DenseStage>(registry);
}

// "0>1 bob>carol in-process"
std::vector<std::string> Texts(const std::vector<PipelineLink>& links) {
  std::vector<std::string> texts;
  for (const PipelineLink& link : links) {
    texts.push_back(absl::StrCat(link.from, ">", link.to, " ", link.sender, ">",
                                 link.receiver, " ", link.path));
  }
  return texts;
}

// Stages of `width` columns at bob, bob and carol, all on the CPU.
class Chain {
 public:
  Chain(testing::TransportKind transports, int64_t width)
      : cluster_(3, AddLinkTypes, transports,
                 {{"alice", {}}, {"bob", {}}, {"carol", {}}}),
        x_(Tensor::Ones({width, width})) {
    std::vector<StageModule> stages;
    for (const char* worker : {"bob", "bob", "carol"}) {
      stages.emplace_back(*Module<DenseStage>::Create(cluster_.alice(), worker,
                                                      width, width, true,
                                                      uint64_t{1})
                               .Await());
    }
    pipeline_ = *Pipeline::Make(cluster_.alice(), {}, stages);
  }
  // After an evaluation.
  std::vector<std::string> Links() {
    EXPECT_THAT(pipeline_->Evaluate(x_), IsOk());
    const auto links = pipeline_->Links();
    EXPECT_THAT(links, IsOk());
    return links.ok() ? Texts(*links) : std::vector<std::string>();
  }

 private:
  testing::TrainingCluster cluster_;
  const Tensor x_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST(PipelineLinks, AreLocalWithinAWorkerAndElseNameTheTransport) {
  EXPECT_THAT(Chain(testing::TransportKind::kInProcess, 4).Links(),
              ElementsAre("0>1 bob>bob local", "1>2 bob>carol in-process"));
}

TEST(PipelineLinks, WorkersOfOneProcessHaveNoWindowThatNobodyRequires) {
  testing::TrainingCluster cluster(3, AddLinkTypes);
  std::vector<StageModule> stages;
  for (const char* worker : {"bob", "carol"}) {
    stages.emplace_back(*Module<DenseStage>::Create(cluster.alice(), worker, 4,
                                                    4, true, uint64_t{1})
                             .Await());
  }
  const auto pipeline = *Pipeline::Make(cluster.alice(), {}, stages);
  const Tensor x = Tensor::Ones({4, 4});
  for (int step = 0; step < 2; ++step) {
    const Context context(cluster.alice());
    ASSERT_THAT(pipeline->Step(context, x, Tensor::Arange(4)), IsOk());
  }
  const auto links = pipeline->Links();
  ASSERT_THAT(links, IsOk());
  EXPECT_EQ(links->front().path, "in-process");
  // A GPU's are for steps that step parameters, wherever these are.
  EXPECT_THAT(links->front().why_no_window,
              HasSubstr(test::TestDevice().is_cuda() ? "step parameters"
                                                     : "one process"));
}

TEST(PipelineLinks, SmallValuesTravelInMessagesThemselves) {
  EXPECT_THAT(Chain(testing::TransportKind::kGrpc, 4).Links(),
              ElementsAre("0>1 bob>bob local", "1>2 bob>carol grpc"));
}

TEST(PipelineLinks, LargeOnesTravelBySharedMemoryOnceItIsOpen) {
  Chain chain(testing::TransportKind::kGrpc, 128);
  std::vector<std::string> links;
  EXPECT_TRUE(Within(std::chrono::seconds(20), [&] {
    links = chain.Links();
    return links.size() == 2 && links[1] == "1>2 bob>carol shared memory";
  })) << ::testing::PrintToString(links);
}

}  // namespace
}  // namespace baton::dist
