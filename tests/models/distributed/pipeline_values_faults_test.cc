// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "models/distributed/pipeline.h"
#include "tests/models/distributed/value_pipelines.h"
#include "tests/support/status_matchers.h"
#include "tests/support/toy_stages.h"

// Wrong routes and lost workers of stages with several inputs and outputs.
namespace baton::dist {
namespace {

using testing::FragileStage;
using ::testing::HasSubstr;
using testing::IsOk;

class PipelineValuesFaultsTest : public ValuePipelineTest {
 protected:
  std::string RefusalOf(const std::vector<StageRoute>& routes) {
    model_.routes = routes;
    const absl::Status status = MakePipeline({}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  std::string ErrorOfStep(const std::vector<StageRoute>& routes,
                          const BatchInputs& batch) {
    model_.routes = routes;
    const auto pipeline = MakePipeline({.split_size = 4});
    if (!pipeline.ok()) return pipeline.status().ToString();
    Context ctx(agent());
    const absl::Status status = (*pipeline)->Step(ctx, batch, labels_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  void ExpectAKilledWorkerFails(const std::vector<StageModule>& modules,
                                const std::vector<StageRoute>& routes) {
    auto pipeline =
        Pipeline::Make(agent(), {.split_size = 4, .routes = routes}, modules);
    ASSERT_THAT(pipeline, IsOk());
    std::thread killer([&] {
      EXPECT_THAT(FragileStage::TheGate().reached.future().Await(), IsOk());
      cluster_.Kill("dave");
    });
    Context ctx(agent());
    const absl::Status status =
        (*pipeline)->Step(ctx, batch_[0], labels_).status();
    FragileStage::TheGate().opened.Set(absl::OkStatus());
    killer.join();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  }
};

TEST_F(PipelineValuesFaultsTest, TheDeathOfAWorkerBelowASkipFailsTheStepOfAll) {
  const auto front = MakeAt(0, {.outputs = 2});
  const auto fragile = *Module<FragileStage>::Create(
                            agent(), "dave", FragileStage::Fault::kWait, 1)
                            .Await();
  const auto back = MakeAt(1, {.inputs = 2});
  ASSERT_NO_FATAL_FAILURE(ExpectAKilledWorkerFails(
      {front, fragile, back}, {{.from = 0, .output = 1, .to = 2, .input = 1}}));
}

// To which the stage before sends nothing.
TEST_F(PipelineValuesFaultsTest, TheDeathOfASkipsTargetFailsTheStepOfAll) {
  const auto front = MakeAt(0, {.outputs = 2});
  const auto beside = MakeAt(1, {});
  const auto fragile = *Module<FragileStage>::Create(
                            agent(), "dave", FragileStage::Fault::kWait, 1)
                            .Await();
  const auto back = MakeAt(0, {.inputs = 2});
  ASSERT_NO_FATAL_FAILURE(ExpectAKilledWorkerFails(
      {front, beside, fragile, back},
      {{.from = 0, .output = 1, .to = 2, .input = 0},
       {.from = 1, .output = 0, .to = 3, .input = 1}}));
}

TEST_F(PipelineValuesFaultsTest, WrongRoutesAreRefused) {
  MakeModel(Unused(), {0, 1, 0});
  EXPECT_THAT(RefusalOf({{.from = 2, .output = 0, .to = 1, .input = 3}}),
              HasSubstr("a route from output 0 of stage 2 to input 3 of stage "
                        "1 leads backwards"));
  EXPECT_THAT(RefusalOf({{.from = 1, .output = 0, .to = 1, .input = 0}}),
              HasSubstr("leads backwards"));
  EXPECT_THAT(RefusalOf({{.from = kBatch, .output = 1, .to = 3, .input = 0}}),
              HasSubstr("a route from input 1 of the batch to input 0 of stage "
                        "3 leads out of the 3 stages"));
  EXPECT_THAT(RefusalOf({{.from = 0, .output = -1, .to = 2, .input = 0}}),
              HasSubstr("has a negative number"));
  EXPECT_THAT(RefusalOf({{.from = 0, .output = 0, .to = 2, .input = 1},
                         {.from = 1, .output = 0, .to = 2, .input = 1}}),
              HasSubstr("is the second to that input"));
}

TEST_F(PipelineValuesFaultsTest, ErrorsNameTheStageAndWhatIsWrong) {
  MakeModel(Unused(), {0, 1, 0});
  const StageRoute mask = {.from = kBatch, .output = 1, .to = 2, .input = 2};
  // Without a loss of all outputs.
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], batch_[1], batch_[2]}),
              HasSubstr("stage 0 of 3: forward of micro-batch 0: [mix] takes 1 "
                        "values, got 2"));
  EXPECT_THAT(ErrorOfStep({}, batch_[0]),
              HasSubstr("stage 2 of 3: forward of micro-batch 0: [mix] takes 3 "
                        "values, got 2"));
  EXPECT_THAT(ErrorOfStep({mask}, batch_[0]),
              HasSubstr("a route names the batch's input 1, counted from 0, "
                        "where there is 1"));
  EXPECT_THAT(
      ErrorOfStep({mask, {.from = 0, .output = 5, .to = 2, .input = 3}},
                  {batch_[0], batch_[1]}),
      HasSubstr("stage 0 of 3: forward of micro-batch 0: [route] a route names "
                "output 5, counted from 0, where there are 3"));
  EXPECT_THAT(
      ErrorOfStep({{.from = kBatch, .output = 1, .to = 2, .input = 7}},
                  {batch_[0], batch_[1]}),
      HasSubstr("stage 2 of 3: forward of micro-batch 0: [route] a route names "
                "input 7, counted from 0, where there are 3"));
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], batch_[1].Slice(0, 0, 3)}),
              HasSubstr("the inputs of a batch differ in their rows: input 0 "
                        "has 12 rows (shape [12, 5]), input 1 has 3 rows "
                        "(shape [3, 5])"));
  EXPECT_THAT(ErrorOfStep({mask}, BatchInputs(Values())),
              HasSubstr("at least one input"));
  EXPECT_THAT(ErrorOfStep({mask}, {batch_[0], Tensor()}),
              HasSubstr("input 1 of the batch has no rows"));
}

TEST_F(PipelineValuesFaultsTest, OnlyOwnLossesTakeSeveralOutputs) {
  MakeModel(Unused(), {0, 1, 0});
  auto pipeline = Pipeline::Make(agent(), {.routes = model_.routes},
                                 {remote_[0], remote_[1], remote_[2]});
  ASSERT_THAT(pipeline, IsOk());
  Context ctx(agent());
  const absl::Status status =
      (*pipeline)->Step(ctx, {batch_[0], batch_[1]}, labels_).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("stage 2 of 3: forward of micro-batch 0: [loss] the "
                        "last stage gave 2 outputs"));
}

}  // namespace
}  // namespace baton::dist
