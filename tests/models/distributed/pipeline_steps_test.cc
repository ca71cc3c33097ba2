// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/ops/arithmetic.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/pipeline.h"
#include "optim/sgd.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/status_matchers.h"
#include "tests/support/steps_of.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"
#include "tests/support/within.h"

// What trainer and workers tell each other in steps, and what becomes of
// parameters, statistics and random numbers when a step breaks.
namespace baton::dist {
namespace {

using testing::DenseStage;
using testing::FragileStage;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::NoisyStage;
using testing::StepsOf;
using testing::Within;
using Fault = FragileStage::Fault;

void AddStepsTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<DenseStage>(registry);
  RegisterModule<FragileStage>(registry);
  RegisterModule<NoisyStage>(registry);
}

class PipelineStepsTest : public ::testing::Test {
 protected:
  PipelineStepsTest() : cluster_(4, AddStepsTypes) {
    FragileStage::ResetGate();
    SetDeterministic(true);
    Generator generator(11);
    x_ = test::Put(RandNormal({12, 6}, generator));
    labels_ = test::Put(RandInt(0, 6, {12}, generator));
  }
  ~PipelineStepsTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  // Two stages that each hold a batch norm and a dropout, at bob and carol, and
  // one at dave, or at `worker`, which goes wrong in its forward `at_call`;
  // three micro-batches a step.
  void Make(Fault fault = Fault::kNone, int at_call = 0,
            const std::string& worker = "dave") {
    pipeline_ = nullptr;
    noisy_.clear();
    for (const char* each : {"bob", "carol"}) {
      noisy_.push_back(
          *Module<NoisyStage>::Create(agent(), each, 6, 0.5, 7).Await());
    }
    fragile_ =
        *Module<FragileStage>::Create(agent(), worker, fault, at_call).Await();
    PipelineOptions options;
    options.split_size = 4;
    options.windows = WindowsHere();
    auto made =
        Pipeline::Make(agent(), options, {noisy_[0], fragile_, noisy_[1]});
    ASSERT_THAT(made, IsOk());
    pipeline_ = *std::move(made);
    sgd_ = std::make_unique<Optimizer<optim::Sgd>>(
        agent(), optim::SgdOptions{.lr = 0.1, .momentum = 0.9},
        std::vector<ParameterSource>{noisy_[0].ref(), noisy_[1].ref()});
    sgd_->set_schedule([](double base, int64_t step) {
      return base / static_cast<double>(step + 1);
    });
  }
  // Of modules and optimizer, with the trainer's rates.
  std::vector<nn::StateMap> States() {
    std::vector<nn::StateMap> states;
    for (const auto& module : noisy_)
      states.push_back(*module.StateDict().Await());
    states.push_back(*sgd_->State());
    return states;
  }
  static void ExpectEqual(const std::vector<nn::StateMap>& got,
                          const std::vector<nn::StateMap>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), wanted[i].size());
      for (const auto& [name, tensor] : wanted[i])
        EXPECT_TRUE(ops::BitEqual(got[i].at(name), tensor)) << i << " " << name;
    }
  }
  // Calls by "worker method" that this worker has made.
  std::map<std::string, uint64_t> Calls(const std::string& by = "alice") {
    std::map<std::string, uint64_t> calls;
    for (const auto& method : cluster_.at(by).GetDebugInfo().methods) {
      if (!method.incoming && method.calls > 0)
        calls[absl::StrCat(method.peer, " ", method.method)] = method.calls;
    }
    return calls;
  }
  std::map<std::string, uint64_t> Messages() {
    std::map<std::string, uint64_t> messages;
    for (const auto& channel : agent().GetDebugInfo().channels)
      messages[channel.peer] += channel.messages_sent;
    return messages;
  }
  // Bytes of the arguments of all Runs at a worker that has neither the first
  // stage nor the last.
  uint64_t BytesOfRuns(const std::string& worker) {
    for (const auto& method : agent().GetDebugInfo().methods) {
      if (!method.incoming && method.peer == worker &&
          method.method == "StageGroup::Run")
        return method.bytes_sent;
    }
    return 0;
  }

  testing::TrainingCluster cluster_;
  std::vector<Module<NoisyStage>> noisy_;
  Module<FragileStage> fragile_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Optimizer<optim::Sgd>> sgd_;
  Tensor x_, labels_;
};

// What was added since.
std::map<std::string, uint64_t> Since(
    const std::map<std::string, uint64_t>& before,
    std::map<std::string, uint64_t> now) {
  for (const auto& [name, count] : before) now[name] -= count;
  std::erase_if(now, [](const auto& entry) { return entry.second == 0; });
  return now;
}

TEST_F(PipelineStepsTest, AStepIsOneMessageToEachWorker) {
  ASSERT_NO_FATAL_FAILURE(Make());
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  const std::map<std::string, uint64_t> runs = {{"bob StageGroup::Run", 3},
                                                {"carol StageGroup::Run", 3},
                                                {"dave StageGroup::Run", 3}};
  const std::map<std::string, uint64_t> each = {
      {"bob", 3}, {"carol", 3}, {"dave", 3}};
  // Once what Make called is over, and word of its handles has left.
  EXPECT_TRUE(Within(std::chrono::seconds(20), [&] {
    const auto calls = Calls(), messages = Messages();
    for (int step = 0; step < 3; ++step)
      EXPECT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
    EXPECT_EQ(Since(calls, Calls()), runs);
    return Since(messages, Messages()) == each;
  }));
}

TEST_F(PipelineStepsTest, WorkersWithWindowsAgreeWithoutMessages) {
  ASSERT_NO_FATAL_FAILURE(Make());
  // By the first worker, which asks and tells two others in turn.
  const auto calls_in_a_step = [&] {
    const auto before = Calls("bob");
    EXPECT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
    uint64_t calls = 0;
    for (const auto& [method, count] : Since(before, Calls("bob")))
      if (absl::StrContains(method, "StageGroup")) calls += count;
    return calls;
  };
  EXPECT_EQ(calls_in_a_step(), 4);
  EXPECT_EQ(calls_in_a_step(), WindowsHere() == Windows::kRequired ? 0 : 4);
  sgd_->set_clip({.norm = 0.05});  // needs the sum of the workers' norms
  EXPECT_EQ(calls_in_a_step(), 4);
  const auto before = Calls("bob");
  EXPECT_THAT(pipeline_->Evaluate(x_), IsOk());
  EXPECT_EQ(Since(before, Calls("bob")).count("carol StageGroup::Ran"), 0);
}

TEST_F(PipelineStepsTest, EveryWorkerCountsAStepOnce) {
  ASSERT_NO_FATAL_FAILURE(Make());
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  Context ctx(agent());
  ASSERT_THAT(pipeline_->Step(ctx, x_, labels_), IsOk());
  ASSERT_THAT(sgd_->Step(ctx), IsOk());
  EXPECT_EQ(StepsOf(cluster_.at("bob")), "2");
  EXPECT_EQ(StepsOf(cluster_.at("carol")), "2");
  EXPECT_EQ(StepsOf(cluster_.at("dave")), "1");  // without parameters
}

TEST_F(PipelineStepsTest, GradientsAreClippedByTheNormOfAllWorkers) {
  std::vector<nn::StateMap> by_contexts;
  for (const bool with_context : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Make());
    sgd_->set_clip({.norm = 0.05});
    for (int step = 0; step < 2; ++step) {
      if (!with_context) {
        ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
        continue;
      }
      Context ctx(agent());
      ASSERT_THAT(pipeline_->Step(ctx, x_, labels_), IsOk());
      EXPECT_GT(*sgd_->GradNorm(ctx), 0.05);  // there is something to clip
      ASSERT_THAT(sgd_->Step(ctx), IsOk());
    }
    if (with_context) by_contexts = States();
  }
  ExpectEqual(States(), by_contexts);
}

TEST_F(PipelineStepsTest, AProgramIsSentOnce) {
  ASSERT_NO_FATAL_FAILURE(Make());
  std::vector<uint64_t> bytes = {0};
  for (int step = 0; step < 3; ++step) {
    ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
    bytes.push_back(BytesOfRuns("dave"));
  }
  EXPECT_LT(bytes[2] - bytes[1], bytes[1]);
  EXPECT_EQ(bytes[3] - bytes[2], bytes[2] - bytes[1]);
  // An evaluation goes by another one, and steps go on by theirs.
  ASSERT_THAT(pipeline_->Evaluate(x_, labels_), IsOk());
  const uint64_t before = BytesOfRuns("dave");
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  EXPECT_EQ(BytesOfRuns("dave") - before, bytes[3] - bytes[2]);
}

TEST_F(PipelineStepsTest, TwoStepsUnderWayGiveWhatStepsInTurnGive) {
  constexpr int kSteps = 6;
  std::vector<double> losses;
  ASSERT_NO_FATAL_FAILURE(Make());
  for (int step = 0; step < kSteps; ++step) {
    Context ctx(agent());
    auto result = pipeline_->Step(ctx, x_, labels_);
    ASSERT_THAT(result, IsOk());
    ASSERT_THAT(sgd_->Step(ctx), IsOk());
    losses.push_back(result->loss);
  }
  const auto states = States();

  std::vector<double> in_one_call;
  ASSERT_NO_FATAL_FAILURE(Make());
  for (int step = 0; step < kSteps; ++step) {
    auto result = pipeline_->Step(*sgd_, x_, labels_);
    ASSERT_THAT(result, IsOk());
    in_one_call.push_back(result->loss);
  }
  EXPECT_EQ(in_one_call, losses);
  ExpectEqual(States(), states);

  std::vector<double> under_way;
  ASSERT_NO_FATAL_FAILURE(Make());
  Future<Pipeline::StepResult> before;
  for (int step = 0; step < kSteps; ++step) {
    auto next = pipeline_->StepAsync(*sgd_, x_, labels_);
    if (before.valid()) {
      const auto result = before.Await();
      ASSERT_THAT(result, IsOk());
      under_way.push_back(result->loss);
    }
    before = next;
  }
  const auto last = before.Await();
  ASSERT_THAT(last, IsOk());
  under_way.push_back(last->loss);
  EXPECT_EQ(under_way, losses);
  ExpectEqual(States(), states);
}

TEST_F(PipelineStepsTest, NoMoreThanTwoAreUnderWay) {
  ASSERT_NO_FATAL_FAILURE(Make(Fault::kWait, 0));
  auto first = pipeline_->StepAsync(*sgd_, x_, labels_);
  auto second = pipeline_->StepAsync(*sgd_, x_, labels_);
  ASSERT_THAT(FragileStage::TheGate().reached.future().Await(), IsOk());
  const auto third = pipeline_->StepAsync(*sgd_, x_, labels_).Await();
  EXPECT_TRUE(absl::IsFailedPrecondition(third.status())) << third.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(pipeline_->Evaluate(x_).status()));
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  EXPECT_THAT(first.Await(), IsOk());
  EXPECT_THAT(second.Await(), IsOk());
  EXPECT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
}

// In which forward it goes wrong, and where its worker's stage is.
struct Break {
  Fault fault;
  int at_call;
  const char* worker;
};

TEST_F(PipelineStepsTest, AStepThatBreaksChangesNothingAndTakesTheNextAlong) {
  ASSERT_NO_FATAL_FAILURE(Make());
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  const auto after_one = States();
  const auto second = pipeline_->Step(*sgd_, x_, labels_);
  ASSERT_THAT(second, IsOk());
  const auto after_two = States();
  for (const Break& at : {Break{Fault::kForward, 3, "dave"},
                          {Fault::kForward, 5, "dave"},
                          {Fault::kBackward, 3, "dave"},
                          {Fault::kBackward, 5, "bob"}}) {
    SCOPED_TRACE(absl::StrCat(at.worker, " at call ", at.at_call));
    std::vector<Future<Pipeline::StepResult>> both;
    // Again where this thread is held up until the first of them is over.
    for (int tries = 0; tries < 20; ++tries) {
      ASSERT_NO_FATAL_FAILURE(Make(at.fault, at.at_call, at.worker));
      ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
      both.clear();
      for (int i = 0; i < 2; ++i)
        both.push_back(pipeline_->StepAsync(*sgd_, x_, labels_));
      if (!both[1].Await().ok()) break;
    }
    for (const auto& step : both) {
      const absl::Status status = step.Await().status();
      EXPECT_THAT(std::string(status.message()), HasSubstr(at.worker));
      EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 of 3"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("broke"));
    }
    ExpectEqual(States(), after_one);
    // Random numbers are drawn again, too.
    const auto again = pipeline_->Step(*sgd_, x_, labels_);
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(again->loss, second->loss);
    ExpectEqual(States(), after_two);
  }
}

TEST_F(PipelineStepsTest, AStepThatBreaksLeavesTheOneBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(Make());
  const auto wanted = pipeline_->Step(*sgd_, x_, labels_);
  ASSERT_THAT(wanted, IsOk());
  const auto after_one = States();
  ASSERT_NO_FATAL_FAILURE(Make(Fault::kForward, 3));
  auto first = pipeline_->StepAsync(*sgd_, x_, labels_);
  auto broken = pipeline_->StepAsync(*sgd_, x_, labels_);
  const auto result = first.Await();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted->loss);
  EXPECT_THAT(std::string(broken.Await().status().message()),
              HasSubstr("forward broke"));
  ExpectEqual(States(), after_one);
}

TEST_F(PipelineStepsTest, TheDeathOfAWorkerFailsBothStepsUnderWay) {
  ASSERT_NO_FATAL_FAILURE(Make(Fault::kWait, 1));
  auto first = pipeline_->StepAsync(*sgd_, x_, labels_);
  auto second = pipeline_->StepAsync(*sgd_, x_, labels_);
  ASSERT_THAT(FragileStage::TheGate().reached.future().Await(), IsOk());
  cluster_.Kill("dave");
  for (const auto& step : {first, second}) {
    const absl::Status status = step.Await().status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  }
  FragileStage::TheGate().opened.Set(absl::OkStatus());
}

TEST_F(PipelineStepsTest, TheDeathOfAWorkerEndsWaitsForItsWindow) {
  ASSERT_NO_FATAL_FAILURE(Make(Fault::kWait, 4));
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  const auto state = *noisy_[0].StateDict().Await();
  auto step = pipeline_->StepAsync(*sgd_, x_, labels_);
  ASSERT_THAT(FragileStage::TheGate().reached.future().Await(), IsOk());
  cluster_.Kill("dave");
  EXPECT_THAT(std::string(step.Await().status().message()), HasSubstr("dave"));
  ExpectEqual({*noisy_[0].StateDict().Await()}, {state});
  FragileStage::TheGate().opened.Set(absl::OkStatus());
}

TEST_F(PipelineStepsTest, WindowsAreOfTheShapesThatTheyWereMadeFor) {
  ASSERT_NO_FATAL_FAILURE(Make());
  ASSERT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  EXPECT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  ExpectWindowsFromTheSecondStepOn(*pipeline_, 1);
  // Other shapes are another plan, whose first step goes by mail.
  const Tensor rows = x_.Slice(0, 0, 11), labels = labels_.Slice(0, 0, 11);
  EXPECT_THAT(pipeline_->Step(*sgd_, rows, labels), IsOk());
  ExpectWindowsFromTheSecondStepOn(*pipeline_, 0);
  EXPECT_THAT(pipeline_->Step(*sgd_, x_, labels_), IsOk());
  ExpectWindowsFromTheSecondStepOn(*pipeline_, 1);
}

TEST_F(PipelineStepsTest, StepsWithContextsMayBeUnderWay) {
  ASSERT_NO_FATAL_FAILURE(Make());
  Context one(agent()), two(agent());
  auto first = pipeline_->StepAsync(one, x_, labels_);
  auto second = pipeline_->StepAsync(two, x_, labels_);
  ASSERT_THAT(first.Await(), IsOk());
  ASSERT_THAT(second.Await(), IsOk());
  EXPECT_THAT(sgd_->Step(one), IsOk());
  EXPECT_THAT(sgd_->Step(two), IsOk());
}

}  // namespace
}  // namespace baton::dist
