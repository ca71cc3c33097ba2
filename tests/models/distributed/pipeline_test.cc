// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/functions/arithmetic.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/precision.h"
#include "core/random.h"
#include "models/distributed/micro_batches.h"
#include "models/distributed/resnet_stage.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/windows_here.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {
namespace {

using testing::DenseStage;
using ::testing::ElementsAre;
using testing::FragileStage;
using testing::GradientsAt;
using ::testing::HasSubstr;

void AddTypes(rpc::Registry& registry) {
  RegisterPipeline(registry);
  RegisterOptimizer<optim::Sgd>(registry);
  RegisterModule<DenseStage>(registry);
  RegisterModule<FragileStage>(registry);
  RegisterModule<ResNetStage>(registry);
  registry.AddFunction<&GradientsAt<DenseStage>>();
  registry.AddFunction<&GradientsAt<ResNetStage>>();
}

using Modules = std::vector<std::shared_ptr<nn::Module>>;
const char* const kWorkers[] = {"bob", "carol", "dave"};

// One process's forward over all stages.
Variable ForwardAll(const Modules& modules, const Tensor& x) {
  Variable value(x);
  for (const auto& module : modules) value = module->Forward(value);
  return value;
}

// One process's gradient accumulation over the same micro-batches; the mean
// loss of the batch.
double AccumulateLocally(const Modules& modules, const Tensor& x,
                         const Tensor& labels,
                         const std::vector<RowRange>& parts) {
  double sum = 0;
  for (const RowRange& rows : parts) {
    Variable out = ForwardAll(modules, x.Slice(0, rows.begin, rows.end));
    Variable loss = autograd::MulScalar(
        nn::CrossEntropy(out, labels.Slice(0, rows.begin, rows.end)),
        static_cast<double>(rows.size()) / static_cast<double>(x.dim(0)));
    sum += loss.tensor().Item();
    loss.Backward();
  }
  return sum;
}

double AccumulateLocally(const Modules& modules, const Tensor& x,
                         const Tensor& labels, int64_t split_size) {
  return AccumulateLocally(modules, x, labels, SplitRows(x.dim(0), split_size));
}

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() : cluster_(4, AddTypes) {
    FragileStage::ResetGate();
    SetDeterministic(true);
  }
  ~PipelineTest() override { SetDeterministic(false); }
  rpc::Agent& agent() { return cluster_.alice(); }

  // An MLP of `stages` layers, here and on the workers, in turn.
  void MakeMlp(int stages) { MakeMlp(*PlaceStages("gpipe", stages, 3)); }
  // One with a layer at each of these.
  void MakeMlp(const std::vector<int>& workers) {
    const int stages = static_cast<int>(workers.size());
    local_.clear();
    remote_.clear();
    for (int i = 0; i < stages; ++i) {
      const int64_t in = i == 0 ? 6 : 8, out = i == stages - 1 ? 4 : 8;
      const bool relu = i < stages - 1;
      const auto seed = static_cast<uint64_t>(i) + 5;
      local_.push_back(DenseStage::Make(in, out, relu, seed));
      local_.back()->To(test::TestDevice());
      remote_.push_back(*Module<DenseStage>::Create(
                             agent(), kWorkers[workers[static_cast<size_t>(i)]],
                             in, out, relu, seed)
                             .Await());
    }
    Generator generator(11);
    x_ = test::Put(RandNormal({12, 6}, generator));
    labels_ = test::Put(RandInt(0, 4, {12}, generator));
  }
  std::unique_ptr<Pipeline> MakePipeline(const PipelineOptions& options) {
    auto pipeline = Pipeline::Make(
        agent(), options,
        std::vector<StageModule>(remote_.begin(), remote_.end()));
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return *std::move(pipeline);
  }
  // Bit for bit.
  void ExpectGradientsEqual(const Context& ctx) {
    for (size_t i = 0; i < local_.size(); ++i) {
      auto grads = agent()
                       .Async<&GradientsAt<DenseStage>>(remote_[i].owner(), ctx,
                                                        remote_[i].ref())
                       .Await();
      ASSERT_TRUE(grads.ok()) << grads.status();
      auto parameters = local_[i]->Parameters();
      ASSERT_EQ(grads->size(), parameters.size());
      for (size_t p = 0; p < parameters.size(); ++p) {
        EXPECT_TRUE(ops::BitEqual((*grads)[p], parameters[p].grad()))
            << "stage " << i << ", parameter " << p;
      }
    }
  }
  absl::Status StepFragile(FragileStage::Fault fault,
                           std::chrono::milliseconds timeout) {
    MakeMlp(2);
    auto fragile =
        *Module<FragileStage>::Create(agent(), "dave", fault, 1).Await();
    PipelineOptions options;
    options.split_size = 4;
    options.step_timeout = timeout;
    auto pipeline =
        *Pipeline::Make(agent(), options, {remote_[0], fragile, remote_[1]});
    Context ctx(agent());
    absl::Status status = pipeline->Step(ctx, x_, labels_).status();
    if (fault != FragileStage::Fault::kWait) {
      // The next step is not harmed.
      Context next(agent());
      auto again = pipeline->Step(next, x_, labels_);
      EXPECT_TRUE(again.ok()) << again.status();
    }
    return status;
  }

  testing::TrainingCluster cluster_;
  Modules local_;
  std::vector<Module<DenseStage>> remote_;
  Tensor x_, labels_;
};

// Numbers of stages and workers.
struct StagesAt {
  int stages, workers;
};

TEST_F(PipelineTest, GradientsEqualAccumulationInOneProcessBitForBit) {
  for (const std::string& schedule : ScheduleNames()) {
    for (const auto& [stages, workers] :
         {StagesAt{1, 1}, {2, 2}, {3, 3}, {4, 2}, {6, 3}, {2, 1}}) {
      const auto placed = PlaceStages(schedule, stages, workers);
      if (!placed.ok()) continue;  // zb-v has two stages a worker
      for (int64_t split : {12, 4, 5, 1}) {
        SCOPED_TRACE(absl::StrCat(schedule, ": ", stages, " stages at ",
                                  workers, " workers, parts of ", split));
        MakeMlp(*placed);
        PipelineOptions options;
        options.split_size = split;
        options.schedule.name = schedule;
        options.windows = WindowsHere();
        auto pipeline = MakePipeline(options);
        for (int step = 0; step < 2; ++step) {
          Context ctx(agent());
          auto result = pipeline->Step(ctx, x_, labels_);
          ASSERT_TRUE(result.ok()) << result.status();
          for (const auto& module : local_) module->ZeroGrad();
          EXPECT_EQ(result->loss,
                    AccumulateLocally(local_, x_, labels_, split));
          ExpectGradientsEqual(ctx);
          ExpectWindowsFromTheSecondStepOn(*pipeline, step);
        }
        EXPECT_EQ(pipeline->schedule()->worker_of_stage(), *placed);
      }
    }
  }
}

TEST_F(PipelineTest, GroupsOfMicroBatchesGiveTheSameGradients) {
  for (const std::string& schedule : ScheduleNames()) {
    const auto placed = PlaceStages(schedule, 4, 2);
    ASSERT_THAT(placed, testing::IsOk());
    MakeMlp(*placed);
    PipelineOptions options;
    options.split_size = 2;  // six, in groups of four and two
    options.at_once = 4;
    options.overlap = true;
    options.schedule.name = schedule;
    options.windows = WindowsHere();
    auto pipeline = MakePipeline(options);
    for (int step = 0; step < 2; ++step) {
      Context ctx(agent());
      auto result = pipeline->Step(ctx, x_, labels_);
      ASSERT_TRUE(result.ok()) << schedule << ": " << result.status();
      for (const auto& module : local_) module->ZeroGrad();
      EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 2));
      ExpectGradientsEqual(ctx);
    }
    EXPECT_EQ(pipeline->schedule()->micro_batches(), 2);
  }
}

// What the worker's stages computed while `work` ran, in the order of time, as
// a program; "?" where two were at it at once.
template <typename Work>
std::string ComputedBy(rpc::Agent& worker, const Work& work) {
  rpc::Tracer& tracer = *worker.tracer();
  tracer.Start(10'000, rpc::Tracer::Clock::now() + std::chrono::minutes(1));
  work();
  std::vector<rpc::TraceEvent> spans;
  for (rpc::TraceEvent& event : tracer.Take().events) {
    if (event.kind == rpc::TraceEvent::Kind::kSpan &&
        absl::StartsWith(event.peer, "stage "))  // not a kernel of a GPU
      spans.push_back(event);
  }
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.begin_ns < b.begin_ns;
  });
  std::vector<std::string> program;
  int64_t end_ns = 0;
  for (const rpc::TraceEvent& span : spans) {
    // A BW has two parts.
    if (program.empty() || program.back() != span.name)
      program.push_back(
          absl::StrCat(span.begin_ns < end_ns ? "?" : "", span.name));
    end_ns = span.end_ns;
  }
  return absl::StrJoin(program, " ");
}

TEST_F(PipelineTest, StagesOfAWorkerFollowItsOneOrder) {
  for (const std::string& schedule : ScheduleNames()) {
    MakeMlp(*PlaceStages(schedule, 4, 2));
    PipelineOptions options;
    options.split_size = 3;
    options.schedule.name = schedule;
    auto pipeline = MakePipeline(options);
    const std::string computed = ComputedBy(cluster_.at("bob"), [&] {
      Context ctx(agent());
      auto result = pipeline->Step(ctx, x_, labels_);
      ASSERT_TRUE(result.ok()) << result.status();
    });
    ASSERT_NE(pipeline->schedule(), nullptr);
    EXPECT_EQ(computed, ToString(pipeline->schedule()->workers[0])) << schedule;
  }
}

TEST_F(PipelineTest, AutoIsOrderedByWhatStepsTake) {
  MakeMlp(*PlaceStages("auto", 4, 2));
  PipelineOptions options;
  options.split_size = 2;
  options.schedule.name = "auto";
  auto pipeline = MakePipeline(options);
  EXPECT_EQ(pipeline->schedule(), nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(pipeline->Timing().status()));
  std::vector<double> bubbles;
  for (int step = 0; step < 4; ++step) {
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->bubble.has_value());
    EXPECT_GT(*result->bubble, 0);
    EXPECT_LT(*result->bubble, 1);
    bubbles.push_back(*result->bubble);
    ASSERT_THAT(CheckSchedule(*pipeline->schedule()), testing::IsOk());
  }
  const auto timing = pipeline->Timing();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->schedule, *pipeline->schedule());
  // Two steps by the costs of the second one.
  EXPECT_DOUBLE_EQ(timing->bubble, (bubbles[2] + bubbles[3]) / 2);
  EXPECT_GT(timing->predicted.makespan, 0);
  EXPECT_GE(timing->predicted.bubble(), 0);
  EXPECT_LT(timing->predicted.bubble(), 1);
  // Another size is another order.
  pipeline->set_split_size(12);
  EXPECT_FALSE(pipeline->Timing().ok());
}

// Workers that declare a GPU; their modules are on the CPU.
TEST_F(PipelineTest, AGpuTimesTheFirstStepsAndSomeOfTheLaterOnes) {
  const rpc::Compute gpu = {.device = Device::Cuda(0)};
  testing::TrainingCluster cluster(
      3, AddTypes, testing::TransportKind::kInProcess,
      {{"alice", {}}, {"bob", gpu}, {"carol", gpu}});
  rpc::Agent& trainer = cluster.alice();
  const Placement placement = {.device = Device::Cpu()};
  std::vector<Module<DenseStage>> stages;
  for (const bool first : {true, false}) {
    stages.push_back(
        *Module<DenseStage>::Create(trainer, first ? "bob" : "carol", placement,
                                    int64_t{4}, int64_t{4}, first, uint64_t{1})
             .Await());
  }
  PipelineOptions options;
  options.split_size = 2;
  options.schedule.name = "auto";
  auto pipeline = Pipeline::Make(trainer, options, {stages[0], stages[1]});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Tensor x = Tensor::Ones({4, 4});
  const Tensor labels = Tensor::From<int64_t>({0, 1, 2, 3});
  std::vector<int> timed;
  for (int step = 0; step < 66; ++step) {
    Context ctx(trainer);
    const auto result = (*pipeline)->Step(ctx, x, labels);
    ASSERT_TRUE(result.ok()) << result.status();
    if (result->bubble) timed.push_back(step);
  }
  EXPECT_THAT(timed, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 64));
  EXPECT_TRUE((*pipeline)->Timing().ok());
  // Another batch size begins anew.
  Context ctx(trainer);
  const auto other =
      (*pipeline)->Step(ctx, x.Slice(0, 0, 2), labels.Slice(0, 0, 2));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->bubble.has_value());
}

TEST_F(PipelineTest, FollowsAScheduleThatIsGiven) {
  MakeMlp(2);
  PipelineOptions options;
  options.split_size = 6;
  const auto mine = ParseSchedule(
      "schedule mine\n"
      "worker 0: 0F0 0F1 0B0 0W0 0BW1\n"
      "worker 1: 1F0 1F1 1BW0 1B1 1W1\n");
  ASSERT_TRUE(mine.ok()) << mine.status();
  options.schedule.given = *mine;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 6));
  ExpectGradientsEqual(ctx);
  EXPECT_EQ(pipeline->schedule()->name, "mine");
  pipeline->set_split_size(4);
  Context next(agent());
  const absl::Status refused = pipeline->Step(next, x_, labels_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("2 micro-batches, not for 2, 2 and 3"));
}

TEST_F(PipelineTest, TakesMicroBatchesOfGivenSizes) {
  PipelineOptions options;
  options.micro_batches = {1, 7, 4};
  for (const char* schedule : {"gpipe", "zb-h1", "auto"}) {
    MakeMlp(2);
    options.schedule.name = schedule;
    auto pipeline = MakePipeline(options);
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss,
              AccumulateLocally(local_, x_, labels_,
                                SplitRows(12, options.micro_batches)));
    ExpectGradientsEqual(ctx);
    auto evaluated = pipeline->Evaluate(x_.Slice(0, 0, 9));
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->outputs[0].dim(0), 9);
    const absl::Status refused =
        pipeline->Step(ctx, x_.Slice(0, 0, 9), labels_.Slice(0, 0, 9)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("1+7+4 rows do not add up to 9"));
  }
  options.split_size = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Pipeline::Make(agent(), options,
                     std::vector<StageModule>(remote_.begin(), remote_.end()))
          .status()));
}

TEST_F(PipelineTest, RecomputedActivationsGiveTheSameGradients) {
  MakeMlp(3);
  PipelineOptions options;
  options.split_size = 5;
  options.checkpoint = true;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 5));
  ExpectGradientsEqual(ctx);
}

TEST_F(PipelineTest, AWorkerMayHaveSeveralStages) {
  MakeMlp(5);  // on three workers
  PipelineOptions options;
  options.split_size = 3;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  ASSERT_TRUE(pipeline->Step(ctx, x_, labels_).ok());
  AccumulateLocally(local_, x_, labels_, 3);
  ExpectGradientsEqual(ctx);
}

TEST_F(PipelineTest, TrainsAsOneProcessDoes) {
  MakeMlp(2);
  PipelineOptions options;
  options.split_size = 5;
  auto pipeline = MakePipeline(options);
  const optim::SgdOptions sgd_options{.lr = 0.1, .momentum = 0.9};
  Optimizer<optim::Sgd> sgd(agent(), sgd_options,
                            {remote_[0].ref(), remote_[1].ref()});
  std::vector<Variable> parameters;
  for (const auto& module : local_) {
    for (const Variable& p : module->Parameters()) parameters.push_back(p);
  }
  optim::Sgd local_sgd(parameters, sgd_options);
  double first = 0, last = 0;
  for (int step = 0; step < 10; ++step) {
    Context ctx(agent());
    auto result = pipeline->Step(ctx, x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(sgd.Step(ctx).ok());
    local_sgd.ZeroGrad();
    EXPECT_EQ(result->loss, AccumulateLocally(local_, x_, labels_, 5));
    local_sgd.Step();
    (step == 0 ? first : last) = result->loss;
  }
  EXPECT_LT(last, first);
  for (size_t i = 0; i < local_.size(); ++i) {
    auto remote = *remote_[i].StateDict().Await();
    for (const auto& [name, tensor] : local_[i]->StateDict()) {
      EXPECT_TRUE(ops::BitEqual(remote.at(name), tensor)) << name;
    }
  }
}

TEST_F(PipelineTest, EvaluatesInEvalModeWithoutAContext) {
  MakeMlp(3);
  PipelineOptions options;
  options.split_size = 5;
  auto pipeline = MakePipeline(options);
  auto result = pipeline->Evaluate(x_, labels_);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Tensor> parts;
  for (const RowRange& rows : SplitRows(12, 5)) {
    parts.push_back(
        ForwardAll(local_, x_.Slice(0, rows.begin, rows.end)).tensor());
  }
  Tensor expected = ops::Cat(parts, 0);
  EXPECT_TRUE(ops::BitEqual(result->outputs[0], expected));
  EXPECT_NEAR(result->loss, nn::CrossEntropy(expected, labels_).tensor().Item(),
              1e-6);
  EXPECT_EQ(result->accuracy,
            static_cast<double>(nn::CountCorrect(expected, labels_)) / 12);
  auto bare = pipeline->Evaluate(x_);
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_TRUE(ops::BitEqual(bare->outputs[0], expected));
  // Training goes on after it.
  Context ctx(agent());
  EXPECT_TRUE(pipeline->Step(ctx, x_, labels_).ok());
}

TEST_F(PipelineTest, ResNetGradientsAndStatisticsEqualThoseOfOneProcess) {
  models::ResNetOptions model;
  model.depth = 18;
  model.width = 16;
  model.num_classes = 5;
  model.cifar_stem = true;
  const std::vector<std::string> cuts = {"layer2"};
  Modules local;
  std::vector<Module<ResNetStage>> remote;
  for (int i = 0; i < 2; ++i) {
    local.push_back(*ResNetStage::Make(model, cuts, i));
    local.back()->To(test::TestDevice());
    remote.push_back(
        *Module<ResNetStage>::Create(agent(), kWorkers[i], model, cuts, i)
             .Await());
  }
  Generator generator(3);
  Tensor images = test::Put(RandNormal({7, 3, 16, 16}, generator));
  Tensor labels = test::Put(RandInt(0, 5, {7}, generator));
  PipelineOptions options;
  options.split_size = 3;
  auto pipeline = *Pipeline::Make(agent(), options, {remote[0], remote[1]});
  Context ctx(agent());
  auto result = pipeline->Step(ctx, images, labels);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, AccumulateLocally(local, images, labels, 3));
  for (size_t i = 0; i < 2; ++i) {
    auto grads = *agent()
                      .Async<&GradientsAt<ResNetStage>>(remote[i].owner(), ctx,
                                                        remote[i].ref())
                      .Await();
    auto parameters = local[i]->NamedParameters();
    ASSERT_EQ(grads.size(), parameters.size());
    for (size_t p = 0; p < grads.size(); ++p) {
      EXPECT_TRUE(ops::BitEqual(grads[p], parameters[p].value.grad()))
          << parameters[p].name;
    }
    auto state = *remote[i].StateDict().Await();
    for (const auto& buffer : local[i]->NamedBuffers()) {
      EXPECT_TRUE(ops::BitEqual(state.at(buffer.name), buffer.value))
          << buffer.name;
    }
  }
}

TEST_F(PipelineTest, AnErrorInAForwardNamesStageWorkerAndCause) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kForward, std::chrono::seconds(9));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 of 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("forward broke"));
}

TEST_F(PipelineTest, AnErrorInABackwardNamesStageWorkerAndCause) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kBackward, std::chrono::seconds(9));
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage 1 of 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("backward broke"));
}

TEST_F(PipelineTest, AMissedDeadlineNamesTheStage) {
  absl::Status status =
      StepFragile(FragileStage::Fault::kWait, std::chrono::milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("stage"));
  FragileStage::TheGate().opened.Set(absl::OkStatus());
}

TEST_F(PipelineTest, TheDeathOfAWorkerFailsTheStepOfAll) {
  MakeMlp(2);
  auto fragile = *Module<FragileStage>::Create(agent(), "dave",
                                               FragileStage::Fault::kWait, 1)
                      .Await();
  PipelineOptions options;
  options.split_size = 4;
  auto pipeline =
      *Pipeline::Make(agent(), options, {remote_[0], fragile, remote_[1]});
  Context ctx(agent());
  std::thread killer([&] {
    EXPECT_TRUE(FragileStage::TheGate().reached.future().Await().ok());
    cluster_.Kill("dave");
  });
  absl::Status status = pipeline->Step(ctx, x_, labels_).status();
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  killer.join();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("dave"));
}

TEST_F(PipelineTest, AStepMayHaveNoTimeLimit) {
  MakeMlp(2);
  PipelineOptions options;
  options.step_timeout = kNoLimit;
  auto pipeline = MakePipeline(options);
  Context ctx(agent());
  auto result = pipeline->Step(ctx, x_, labels_);
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST_F(PipelineTest, WithoutALossTargetsAreNotSent) {
  MakeMlp(1);
  PipelineOptions options;
  options.loss = Loss::kNone;
  auto pipeline = MakePipeline(options);
  for (int i = 0; i < 50; ++i) {
    auto result = pipeline->Evaluate(x_, labels_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss, 0);
  }
}

TEST_F(PipelineTest, RefusesWhatDoesNotFit) {
  MakeMlp(2);
  PipelineOptions options;
  EXPECT_FALSE(Pipeline::Make(agent(), options, {}).ok());
  options.schedule.name = "none";
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0]}).ok());
  options.schedule.name = "zb-v";  // needs two stages a worker
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0], remote_[1]}).ok());
  options.schedule.name = "gpipe";
  options.split_size = -1;
  EXPECT_FALSE(Pipeline::Make(agent(), options, {remote_[0]}).ok());
  options.split_size = 4;
  auto pipeline = MakePipeline(options);
  auto status = [&](const Tensor& x, const Tensor& targets) {
    Context ctx(agent());
    return pipeline->Step(ctx, x, targets).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status(x_, Tensor())));
  EXPECT_TRUE(absl::IsInvalidArgument(status(Tensor(), labels_)));
  EXPECT_TRUE(absl::IsInvalidArgument(status(x_, labels_.Slice(0, 0, 3))));
  absl::Status wrong = status(test::Put(Tensor::Ones({12, 7})), labels_);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("stage 0 of 2"));
  EXPECT_TRUE(status(x_, labels_).ok());
}

TEST_F(PipelineTest, ASecondPipelineOverAModuleIsRefusedWithTheRemedy) {
  MakeMlp(2);
  auto first = MakePipeline({});
  agent().set_default_timeout(std::chrono::milliseconds(400));
  auto second = Pipeline::Make(agent(), {}, {remote_[1]});
  ASSERT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  const std::string why(second.status().message());
  EXPECT_THAT(why, HasSubstr("carol"));
  EXPECT_THAT(why, HasSubstr("DenseStage"));
  EXPECT_THAT(why, HasSubstr("stage 1 of 2 of a pipeline of worker alice"));
  EXPECT_THAT(why, HasSubstr("drop that Pipeline"));
  agent().set_default_timeout(kDefaultAwait);
  Context ctx(agent());
  EXPECT_TRUE(first->Step(ctx, x_, labels_).ok());
  // Once it is dropped.
  first = nullptr;
  second = Pipeline::Make(agent(), {}, {remote_[0], remote_[1]});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST_F(PipelineTest, CallsOfAModuleWaitUntilItsStepIsOver) {
  MakeMlp(2);
  auto fragile = *Module<FragileStage>::Create(agent(), "dave",
                                               FragileStage::Fault::kWait, 0)
                      .Await();
  auto pipeline = *Pipeline::Make(agent(), {}, {remote_[0], fragile});
  std::thread trainer([&] { EXPECT_TRUE(pipeline->Evaluate(x_).ok()); });
  ASSERT_TRUE(FragileStage::TheGate().reached.future().Await().ok());
  agent().set_default_timeout(std::chrono::milliseconds(300));
  absl::Status train = fragile.Eval().Await();
  EXPECT_TRUE(absl::IsDeadlineExceeded(train)) << train;
  EXPECT_THAT(std::string(train.message()), HasSubstr("StageGroup::Run"));
  FragileStage::TheGate().opened.Set(absl::OkStatus());
  trainer.join();
  agent().set_default_timeout(kDefaultAwait);
  EXPECT_TRUE(fragile.Eval().Await().ok());
}

}  // namespace
}  // namespace baton::dist
