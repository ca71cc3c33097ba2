// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/parallel.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/partition.h"
#include "models/distributed/pipeline.h"
#include "models/distributed/transformer_stage.h"
#include "models/nn/loss.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::GradientsAt;
using ::testing::HasSubstr;

void AddProfileTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<TransformerStage>(registry);
  RegisterLinks(registry);
  RegisterProfile<TransformerStage>(registry);
  registry.AddFunction<&GradientsAt<TransformerStage>>();
}

// The workers of this cluster can train, but not measure.
void AddOnlyTraining(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterModule<TransformerStage>(registry);
}

models::TransformerOptions SmallModel() {
  return {.vocabulary = 13,
          .context = 7,
          .width = 8,
          .layers = 4,
          .heads = 2,
          .tied = false,
          .seed = 3};
}

MakeUnit Given(std::vector<std::shared_ptr<nn::Module>> modules) {
  return [modules = std::move(modules)](size_t unit) { return modules[unit]; };
}

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest() : cluster_(3, AddProfileTypes) {
    SetComputeThreads(1);  // of the process that is compared with
    SetDeterministic(true);
    Generator generator(7);
    request_.inputs = test::Put(RandInt(0, 13, {5, 7}, generator));
    request_.targets = test::Put(RandInt(0, 13, {5, 7}, generator));
    request_.rows = {5, 2};
    request_.compute_threads = 1;
  }
  ~ProfileTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }
  absl::StatusOr<ClusterProfile> Measure() {
    return ProfileCluster<TransformerStage>(agent(), workers_, SmallModel(),
                                            request_, seconds(60));
  }
  // A step of the plan over the workers against one process that accumulates
  // over the same micro-batches.
  void ExpectTrainsLikeOneProcess(const Plan& plan) {
    const auto count = static_cast<int>(plan.workers.size());
    std::vector<Module<TransformerStage>> remote;
    std::vector<std::unique_ptr<TransformerStage>> local;
    for (int i = 0; i < count; ++i) {
      const auto worker =
          static_cast<size_t>(plan.workers[static_cast<size_t>(i)]);
      remote.push_back(
          *Module<TransformerStage>::Create(agent(), workers_[worker],
                                            SmallModel(), plan.cuts, i)
               .Await());
      local.push_back(*TransformerStage::Make(SmallModel(), plan.cuts, i));
      local.back()->To(test::TestDevice());
    }
    auto pipeline =
        Pipeline::Make(agent(),
                       {.split_size = plan.split_size,
                        .schedule = plan.schedule,
                        .compute_threads = 1},
                       std::vector<StageModule>(remote.begin(), remote.end()));
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    const Tensor& x = request_.inputs;
    const Tensor& targets = request_.targets;
    Context ctx(agent());
    const auto step = (*pipeline)->Step(ctx, x, targets);
    ASSERT_TRUE(step.ok()) << step.status();
    double loss = 0;
    for (const RowRange& rows : SplitRows(5, plan.micro_batches)) {
      Variable out(x.Slice(0, rows.begin, rows.end));
      for (const auto& stage : local) out = stage->Forward(out);
      const Variable part = autograd::MulScalar(
          nn::CrossEntropy(out, targets.Slice(0, rows.begin, rows.end)),
          static_cast<double>(rows.size()) / 5);
      loss += part.tensor().Item();
      part.Backward();
    }
    EXPECT_EQ(step->loss, loss);
    for (size_t i = 0; i < local.size(); ++i) {
      const auto grads = *agent()
                              .Async<&GradientsAt<TransformerStage>>(
                                  remote[i].owner(), ctx, remote[i].ref())
                              .Await();
      const auto parameters = local[i]->NamedParameters();
      ASSERT_EQ(grads.size(), parameters.size());
      for (size_t p = 0; p < grads.size(); ++p)
        EXPECT_TRUE(ops::BitEqual(grads[p], parameters[p].value.grad()))
            << parameters[p].name;
    }
  }

  testing::TrainingCluster cluster_;
  const std::vector<std::string> workers_ = {"bob", "carol"};
  ProfileRequest request_;
};

TEST_F(ProfileTest, SaysWhatEachUnitCostsAtEachWorker) {
  const auto profile = Measure();
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->workers.size(), 2u);
  for (const Profile& worker : profile->workers) {
    EXPECT_THAT(worker.units, ElementsAre("embedding", "blocks.0", "blocks.1",
                                          "blocks.2", "blocks.3", "head"));
    EXPECT_THAT(worker.rows, ElementsAre(2, 5));
    EXPECT_EQ(worker.input_bytes, 7 * 8);
    // Tokens and positions; a norm and the weight of the logits.
    EXPECT_EQ(worker.parameter_bytes.front(), (13 + 7) * 8 * 4);
    EXPECT_EQ(worker.parameter_bytes.back(), (8 + 8 + 13 * 8) * 4);
    ASSERT_EQ(worker.costs.size(), 2u);
    for (size_t at = 0; at < 2; ++at) {
      ASSERT_EQ(worker.costs[at].size(), 6u);
      for (size_t unit = 0; unit < 6; ++unit) {
        const UnitCosts& costs = worker.costs[at][unit];
        EXPECT_GT(costs.seconds.forward, 0);
        EXPECT_GT(costs.seconds.input_grad, 0);
        EXPECT_GE(costs.seconds.weight_grad, 0);
        const double width = unit < 5 ? 8 : 0;
        EXPECT_EQ(costs.output_bytes,
                  static_cast<double>(worker.rows[at]) * 7 * width * 4);
      }
    }
  }
  ASSERT_EQ(profile->links.size(), 2u);
  for (size_t from = 0; from < 2; ++from) {
    ASSERT_EQ(profile->links[from].size(), 2u);
    EXPECT_EQ(profile->links[from][from].latency_s, 0);
    EXPECT_GT(profile->links[from][1 - from].latency_s, 0);
    EXPECT_GE(profile->links[from][1 - from].seconds_per_byte, 0);
  }
}

// Where no other worker of the process allocates meanwhile.
TEST_F(ProfileTest, CountsWhatABackwardWaitsFor) {
  const std::vector<std::string> units = {"a", "b"};
  std::vector<std::shared_ptr<nn::Module>> modules = {
      std::make_unique<testing::DenseStage>(64, 256, true, 1),
      std::make_unique<testing::DenseStage>(256, 4, false, 2)};
  Generator generator(1);
  const ProfileRequest request = {.inputs = RandNormal({512, 64}, generator),
                                  .targets = RandInt(0, 4, {512}, generator),
                                  .rows = {512, 256}};
  const auto profile = MeasureUnits(units, Given(modules), request);
  ASSERT_TRUE(profile.ok()) << profile.status();
  for (size_t at = 0; at < 2; ++at) {
    const auto rows = static_cast<double>(profile->rows[at]);
    // The output of the ReLU at least, and not many more of the kind.
    EXPECT_GE(profile->costs[at][0].held_bytes, rows * 256 * 4);
    EXPECT_LE(profile->costs[at][0].held_bytes, rows * 256 * 4 * 3);
    EXPECT_LT(profile->costs[at][1].held_bytes, rows * 256 * 4);
  }
}

// Passes no gradient to the unit before it.
class DetachingStage final : public nn::Module {
 public:
  Variable Forward(const Variable& x) override {
    return linear_.Forward(Variable(x.tensor()));
  }

 private:
  Generator generator_{1};
  nn::Linear& linear_ = MakeModule<nn::Linear>("linear", 8, 4, generator_);
};

TEST_F(ProfileTest, AUnitWithoutAGradientCostsNoUsualTime) {
  const std::vector<std::shared_ptr<nn::Module>> modules = {
      std::make_unique<testing::DenseStage>(8, 8, true, 1),
      std::make_shared<DetachingStage>()};
  Generator generator(1);
  const auto profile = MeasureUnits({"a", "b"}, Given(modules),
                                    {.inputs = RandNormal({4, 8}, generator),
                                     .targets = RandInt(0, 4, {4}, generator),
                                     .rows = {4}});
  ASSERT_TRUE(profile.ok()) << profile.status();
  const StageCosts& costs = profile->costs[0][0].seconds;
  EXPECT_GT(costs.forward, 0);
  EXPECT_NE(costs.input_grad, StageCosts().input_grad);
  EXPECT_NE(costs.weight_grad, StageCosts().weight_grad);
}

// Batch norm over images of one pixel.
TEST_F(ProfileTest, LeavesOutSizesThatTheModelRefuses) {
  std::vector<std::shared_ptr<nn::Module>> modules = {
      std::make_unique<testing::NoisyStage>(8, 0.1, 1),
      std::make_unique<testing::DenseStage>(8, 4, false, 2)};
  Generator generator(1);
  ProfileRequest request = {.inputs = RandNormal({4, 8}, generator),
                            .targets = RandInt(0, 4, {4}, generator),
                            .rows = {4, 1, 2}};
  const auto profile = MeasureUnits({"a", "b"}, Given(modules), request);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->rows, ElementsAre(2, 4));
  EXPECT_EQ(profile->least_rows, 2);
  request.rows = {1};
  EXPECT_THAT(
      std::string(
          MeasureUnits({"a", "b"}, Given(modules), request).status().message()),
      HasSubstr("batch_norm"));
}

// Has the memory for two rows only.
class SmallStage final : public nn::Module {
 public:
  Variable Forward(const Variable& x) override {
    if (x.tensor().dim(0) > 2)
      throw Error(absl::ResourceExhaustedError("no memory for these rows"));
    return linear_.Forward(x);
  }

 private:
  Generator generator_{1};
  nn::Linear& linear_ = MakeModule<nn::Linear>("linear", 8, 4, generator_);
};

TEST_F(ProfileTest, LeavesOutSizesThatDoNotFit) {
  const std::vector<std::shared_ptr<nn::Module>> modules = {
      std::make_shared<testing::DenseStage>(8, 8, true, 1),
      std::make_shared<SmallStage>()};
  Generator generator(1);
  ProfileRequest request = {.inputs = RandNormal({4, 8}, generator),
                            .targets = RandInt(0, 4, {4}, generator),
                            .rows = {4, 1, 2}};
  const auto profile = MeasureUnits({"a", "b"}, Given(modules), request);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->rows, ElementsAre(1, 2));
  EXPECT_EQ(profile->least_rows, 1);
  request.rows = {4};
  EXPECT_EQ(MeasureUnits({"a", "b"}, Given(modules), request).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// There is memory for so many of them at a time.
class LargeStage final : public nn::Module {
 public:
  static absl::StatusOr<std::shared_ptr<nn::Module>> Make(int most, int in,
                                                          int out) {
    if (alive == most)
      throw Error(absl::ResourceExhaustedError("no memory for it"));
    return std::make_shared<LargeStage>(in, out);
  }
  LargeStage(int in, int out)
      : linear_(MakeModule<nn::Linear>("linear", in, out, generator_)) {
    most_alive = std::max(most_alive, ++alive);
  }
  ~LargeStage() override { --alive; }
  Variable Forward(const Variable& x) override { return linear_.Forward(x); }

  static inline int alive = 0, most_alive = 0;

 private:
  Generator generator_{1};
  nn::Linear& linear_;
};

TEST_F(ProfileTest, MeasuresAModelThatIsLargerThanTheMemory) {
  const std::vector<std::string> units = {"a", "b", "c", "d", "e"};
  Generator generator(1);
  const ProfileRequest request = {.inputs = RandNormal({4, 8}, generator),
                                  .targets = RandInt(0, 4, {4}, generator),
                                  .rows = {4, 2}};
  for (int most : {5, 2, 1}) {
    LargeStage::most_alive = 0;
    const auto profile = MeasureUnits(
        units,
        [&](size_t unit) {
          return LargeStage::Make(most, unit == 0 ? 8 : 16, unit == 4 ? 4 : 16);
        },
        request);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(LargeStage::most_alive, most);
    EXPECT_EQ(LargeStage::alive, 0);
    EXPECT_EQ(profile->units, units);
    EXPECT_THAT(profile->parameter_bytes,
                ElementsAre(9 * 16 * 4, 17 * 16 * 4, 17 * 16 * 4, 17 * 16 * 4,
                            17 * 4 * 4));
    EXPECT_THAT(profile->rows, ElementsAre(2, 4));
    for (size_t at = 0; at < 2; ++at) {
      ASSERT_EQ(profile->costs[at].size(), 5u);
      for (size_t unit = 0; unit < 5; ++unit) {
        const UnitCosts& costs = profile->costs[at][unit];
        EXPECT_GT(costs.seconds.forward, 0);
        EXPECT_GT(costs.seconds.weight_grad, 0);
        EXPECT_GE(costs.seconds.input_grad, 0);
        EXPECT_EQ(
            costs.output_bytes,
            unit < 4 ? static_cast<double>(profile->rows[at]) * 16 * 4 : 0);
      }
    }
  }
  const auto none = MeasureUnits(
      units, [](size_t) { return LargeStage::Make(0, 8, 16); }, request);
  EXPECT_EQ(none.status().message(), "no memory for it");
}

TEST_F(ProfileTest, APlanTrainsLikeOneProcess) {
  auto profile = Measure();
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto small = MakePlan(*profile, {.rows = 5});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_LE(small->seconds(), small->alone_s);
  ExpectTrainsLikeOneProcess(*small);
  // As if workers were slow beside their links, and a block took as long as
  // any other.
  for (Profile& worker : profile->workers) {
    for (auto& costs : worker.costs) {
      for (UnitCosts& unit : costs) unit.seconds = {10, 10, 10};
    }
  }
  const auto large = MakePlan(*profile, {.rows = 5, .split_sizes = {2}});
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_THAT(large->cuts, ElementsAre("blocks.1"));
  EXPECT_THAT(large->micro_batches, ElementsAre(2, 2, 1));
  ExpectTrainsLikeOneProcess(*large);
}

TEST_F(ProfileTest, RefusesWhatDoesNotFit) {
  request_.rows = {6};
  EXPECT_THAT(std::string(Measure().status().message()),
              HasSubstr("micro-batches of 6 rows needs inputs"));
  request_.rows = {2};
  request_.loss = Loss::kNone;
  EXPECT_EQ(Measure().status().code(), absl::StatusCode::kInvalidArgument);
  request_.loss = Loss::kCrossEntropy;
  request_.inputs = test::Put(Tensor::Zeros({5, 7}));
  EXPECT_THAT(std::string(Measure().status().message()),
              HasSubstr("expected tokens i64"));
}

TEST(UnregisteredProfile, HasTheLineToAdd) {
  testing::TrainingCluster cluster(2, AddOnlyTraining);
  EXPECT_EQ(ProfileCluster<TransformerStage>(cluster.alice(), {"bob"},
                                             SmallModel(), {}, seconds(60))
                .status()
                .message(),
            "bob, ProfileCluster<TransformerStage>: not registered on this "
            "worker: call dist::RegisterProfile<TransformerStage>(registry) "
            "before joining, in every process");
  EXPECT_EQ(ProfileLinks(cluster.alice(), {"alice", "bob"}, seconds(60))
                .status()
                .message(),
            "alice, ProfileLinks: not registered on this worker: call "
            "dist::RegisterLinks(registry) before joining, in every process");
}

TEST(SplitSizes, AreThoseOfEqualMicroBatches) {
  EXPECT_THAT(SplitSizesFor(12), ElementsAre(12, 6, 4, 3, 2, 1));
  EXPECT_THAT(SplitSizesFor(1), ElementsAre(1));
  EXPECT_EQ(SplitSizesFor(120).front(), 120);
  EXPECT_EQ(SplitSizesFor(120).back(), 4);
}

TEST(SplitSizes, AreMeasuredWhereOthersCanBeToldFromThem) {
  EXPECT_THAT(RowsToMeasure(SplitSizesFor(12)), ElementsAre(12, 6, 3, 1));
  EXPECT_THAT(RowsToMeasure({20}), ElementsAre(20));
  EXPECT_THAT(RowsToMeasure({10, 20, 18}), ElementsAre(20, 10));
  EXPECT_THAT(RowsToMeasure({20, 19}), ElementsAre(20, 19));
}

TEST(Profile, TellsSizesBetweenAndBeyondWhatWasMeasured) {
  Profile profile;
  profile.units = {"only"};
  profile.rows = {2, 4, 8};
  for (const double forward : {3., 4., 12.})
    profile.costs.push_back({{{forward, 2 * forward, 0}, forward, 1}});
  const auto forward = [&](int64_t rows) {
    return profile.At(rows)[0].seconds.forward;
  };
  EXPECT_DOUBLE_EQ(forward(1), 1.5);
  EXPECT_DOUBLE_EQ(forward(2), 3);
  EXPECT_DOUBLE_EQ(forward(3), 3.5);
  EXPECT_DOUBLE_EQ(forward(4), 4);
  EXPECT_DOUBLE_EQ(forward(6), 8);
  EXPECT_DOUBLE_EQ(forward(8), 12);
  EXPECT_DOUBLE_EQ(forward(16), 24);
  EXPECT_DOUBLE_EQ(profile.At(6)[0].seconds.input_grad, 16);
  EXPECT_DOUBLE_EQ(profile.At(6)[0].held_bytes, 8);
}

}  // namespace
}  // namespace baton::dist
