// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/elastic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/loss.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/embedding.h"
#include "models/distributed/server/parameter_server.h"
#include "models/distributed/stock.h"
#include "models/nn/batch_norm.h"
#include "models/nn/linear.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/models/distributed/data_parallel/on_each.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

namespace baton::dist {
namespace {

using absl::StatusCode;
using testing::Fails;
using testing::IsOk;
using testing::LocalCluster;
using testing::OnEach;
using Share = ElasticTraining::Share;
using Done = ElasticTraining::Done;

constexpr int64_t kElasticSamples = 20;

class Layers final : public nn::Module {
 public:
  explicit Layers(uint64_t seed)
      : generator_(seed),
        first_(MakeModule<nn::Linear>("first", 8, 16, generator_)),
        last_(MakeModule<nn::Linear>("last", 16, 4, generator_)) {}
  Variable Forward(const Variable& x) override {
    return last_(autograd::Relu(first_(x)));
  }

 private:
  Generator generator_;
  nn::Linear& first_;
  nn::Linear& last_;
};

Variable LossOf(nn::Module& model, const std::vector<int64_t>& samples) {
  Generator generator(3);
  const Tensor all = RandNormal({kElasticSamples, 8}, generator);
  const Tensor labels = RandInt(0, 4, {kElasticSamples}, generator);
  const auto count = static_cast<int64_t>(samples.size());
  Tensor x = Tensor::Empty({count, 8});
  Tensor y = Tensor::Empty({count}, {.dtype = DType::kI64});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sample = samples[static_cast<size_t>(i)];
    x.Slice(0, i, i + 1).CopyFrom(all.Slice(0, sample, sample + 1));
    y.data<int64_t>()[i] = labels.data<int64_t>()[sample];
  }
  return autograd::CrossEntropy(model(x), y);
}

ElasticOptions OptionsFor(int64_t batch) {
  ElasticOptions options;
  options.samples = std::make_shared<data::RandomSampler>(
      kElasticSamples, data::RandomSamplerOptions{.seed = 2});
  options.batch = batch;
  options.timeout = std::chrono::seconds(30);
  return options;
}

// Members w0, w1, ... of one process, each with a model of its own.
class Elastic : public ::testing::Test {
 protected:
  static constexpr size_t kMembers = 3;
  Elastic() : cluster_(ClusterOf()) {}

  static testing::ClusterOptions ClusterOf() {
    testing::ClusterOptions options;
    options.names.clear();
    for (size_t i = 0; i < kMembers; ++i)
      options.names.push_back(absl::StrCat("w", i));
    options.fill = [](rpc::Registry& registry) {
      rpc::RegisterCollectives(registry);
      RegisterElastic(registry);
    };
    options.on_start = [](rpc::Agent& agent) {
      rpc::AttachCollectives(agent);
      AttachElastic(agent);
    };
    return options;
  }

  LocalCluster cluster_;
};

// Until all are there and enough steps are done, which all know alike.
struct Trained {
  nn::StateMap state;
  std::vector<Done> steps;
};
Trained TrainTogether(rpc::Agent& agent, size_t rank, int64_t batch,
                      size_t members, int64_t least) {
  Layers model(10 + rank);  // whoever began is who counts
  optim::Adam adam(model.Parameters(), {.lr = 0.01});
  auto training = ElasticTraining::Make(agent, model, adam, OptionsFor(batch));
  EXPECT_THAT(training, IsOk());
  Trained trained;
  if (!training.ok()) return trained;
  for (;;) {
    const auto done = (*training)->Step(
        [&](const Share& share) { return LossOf(model, share.samples); });
    EXPECT_THAT(done, IsOk());
    if (!done.ok()) break;
    trained.steps.push_back(*done);
    if (done->step >= least && done->members == static_cast<int>(members))
      break;
  }
  (*training)->group().Barrier().Await().IgnoreError();
  for (const auto& [name, tensor] : model.StateDict())
    trained.state.emplace(name, tensor.Clone());
  return trained;
}

// Batches of 7 are shared as 3, 2 and 2; the last of an epoch has 6 samples.
// Of a batch of 2 one member has nothing.
TEST_F(Elastic, GivesWhatOneProcessGivesWhoeverComesMeanwhile) {
  for (const int64_t batch : {7, 2}) {
    std::vector<Trained> trained(kMembers);
    OnEach(kMembers, [&](size_t rank) {
      trained[rank] = TrainTogether(cluster_[rank], rank, batch, kMembers, 30);
    });
    const auto steps = trained[0].steps.back().step + 1;
    // The seed is that of whoever began, whose steps are all there.
    size_t first = 0;
    for (size_t rank = 0; rank < kMembers; ++rank)
      if (trained[rank].steps.front().step == 0) first = rank;
    Layers whole(10 + first);
    optim::Adam adam(whole.Parameters(), {.lr = 0.01});
    const auto sampler = OptionsFor(batch).samples;
    std::vector<double> losses;
    for (int64_t epoch = 0, step = 0; step < steps; ++epoch) {
      const std::vector<int64_t> order = sampler->Order(epoch);
      for (int64_t at = 0; at < kElasticSamples && step < steps;
           at += batch, ++step) {
        const int64_t end = std::min(at + batch, kElasticSamples);
        adam.ZeroGrad();
        const Variable loss =
            LossOf(whole, {order.begin() + at, order.begin() + end});
        losses.push_back(loss.tensor().Item());
        loss.Backward();
        adam.Step();
      }
    }
    const nn::StateMap expected = whole.StateDict();
    for (const Trained& each : trained) {
      EXPECT_EQ(each.steps.back().step + 1, steps);
      for (const auto& [name, value] : each.state) {
        EXPECT_TRUE(ops::BitEqual(value, trained[0].state.at(name))) << name;
        EXPECT_TRUE(ops::AllClose(value, expected.at(name), 1e-3, 1e-4))
            << name;
      }
      for (const Done& done : each.steps)
        EXPECT_NEAR(done.loss, losses[static_cast<size_t>(done.step)], 1e-3);
    }
  }
  cluster_.ExpectIdle();
}

TEST_F(Elastic, AnErrorOfOneMembersOwnEndsTheRunForAll) {
  std::vector<absl::Status> ends(kMembers);
  OnEach(kMembers, [&](size_t rank) {
    Layers model(rank);
    optim::Adam adam(model.Parameters(), {.lr = 0.01});
    ElasticOptions options = OptionsFor(6);
    options.min_members = kMembers;
    const auto training =
        ElasticTraining::Make(cluster_[rank], model, adam, options);
    ASSERT_THAT(training, IsOk());
    while (ends[rank].ok()) {
      ends[rank] =
          (*training)
              ->Step([&](const Share& share) {
                Require(rank != 1 || share.step < 4, "test", "no more of this");
                return LossOf(model, share.samples);
              })
              .status();
    }
  });
  for (const absl::Status& end : ends)
    EXPECT_THAT(end.message(), ::testing::HasSubstr("no more of this"));
}

TEST_F(Elastic, RefusesWhatCannotBe) {
  Layers model(1);
  optim::Adam adam(model.Parameters(), {.lr = 0.01});
  const auto refused = [&](ElasticOptions options, const std::string& why) {
    EXPECT_THAT(
        ElasticTraining::Make(cluster_[0], model, adam, std::move(options)),
        Fails(StatusCode::kInvalidArgument, why));
  };
  ElasticOptions options = OptionsFor(0);
  refused(options, "a batch of 1 or more");
  options = OptionsFor(4);
  options.min_members = 3;
  options.max_members = 2;
  refused(options, "min_members is 1 to max_members");
  options = OptionsFor(4);
  options.data_parallel.shard_optimizer = true;
  refused(options, "shard_optimizer");
}

TEST_F(Elastic, SaysThatTooFewHaveCome) {
  Layers model(1);
  optim::Adam adam(model.Parameters(), {.lr = 0.01});
  ElasticOptions options = OptionsFor(4);
  options.min_members = 2;
  options.timeout = std::chrono::milliseconds(200);
  EXPECT_THAT(
      ElasticTraining::Make(cluster_[0], model, adam, options),
      Fails(StatusCode::kDeadlineExceeded, "has 1 members and needs 2"));
  // It is in no run then, and may try again.
  options.min_members = 1;
  EXPECT_THAT(ElasticTraining::Make(cluster_[0], model, adam, options), IsOk());
}

TEST_F(Elastic, LetsNoMoreInThanItMay) {
  std::vector<int> most(kMembers, 0);
  std::vector<absl::Status> made(kMembers);
  OnEach(kMembers, [&](size_t rank) {
    Layers model(rank);
    optim::Adam adam(model.Parameters(), {.lr = 0.01});
    ElasticOptions options = OptionsFor(6);
    options.min_members = options.max_members = 2;
    options.timeout = std::chrono::seconds(2);
    const auto training =
        ElasticTraining::Make(cluster_[rank], model, adam, options);
    made[rank] = training.status();
    if (!training.ok()) return;
    for (int64_t step = 0; step < 20; ++step) {
      const auto done = (*training)->Step(
          [&](const Share& share) { return LossOf(model, share.samples); });
      ASSERT_THAT(done, IsOk());
      most[rank] = std::max(most[rank], done->members);
    }
    (*training)->group().Barrier().Await().IgnoreError();
  });
  // The third one finds nobody in the end, or those who have no room.
  EXPECT_EQ(std::count(most.begin(), most.end(), 2), 2);
  EXPECT_EQ(std::count_if(made.begin(), made.end(),
                          [](const absl::Status& each) { return each.ok(); }),
            2);
}

TEST_F(Elastic, BeginsWithAllItsFirstWorkersAndTheFirstOnesState) {
  std::vector<Done> first(kMembers);
  std::vector<nn::StateMap> state(kMembers);
  OnEach(kMembers, [&](size_t rank) {
    Layers model(10 + rank);
    optim::Adam adam(model.Parameters(), {.lr = 0});
    ElasticOptions options = OptionsFor(6);
    rpc::WorkerInfo lost = cluster_["w1"].self();
    ++lost.incarnation;  // an earlier process
    options.first_workers = {lost, cluster_["w2"].self(), cluster_["w0"].self(),
                             cluster_["w1"].self()};
    const auto training =
        ElasticTraining::Make(cluster_[rank], model, adam, options);
    ASSERT_THAT(training, IsOk());
    const auto done = (*training)->Step(
        [&](const Share& share) { return LossOf(model, share.samples); });
    ASSERT_THAT(done, IsOk());
    first[rank] = *done;
    state[rank] = model.StateDict();
    (*training)->group().Barrier().Await().IgnoreError();
  });
  const nn::StateMap expected = Layers(12).StateDict();
  for (size_t rank = 0; rank < kMembers; ++rank) {
    EXPECT_EQ(first[rank].step, 0);
    EXPECT_EQ(first[rank].members, static_cast<int>(kMembers));
    for (const auto& [name, value] : expected)
      EXPECT_TRUE(ops::BitEqual(state[rank].at(name), value)) << name;
  }
}

TEST_F(Elastic, OnlyJoinsWhatOthersHaveBegun) {
  Layers model(1);
  optim::Adam adam(model.Parameters(), {.lr = 0.01});
  ElasticOptions options = OptionsFor(4);
  options.only_joins = true;
  EXPECT_THAT(ElasticTraining::Make(cluster_[0], model, adam, options),
              Fails(StatusCode::kDataLoss, "nobody is left"));
}

constexpr int64_t kElasticRowWidth = 8, kElasticRowBatch = 5,
                  kElasticRowSteps = 24;
constexpr double kElasticRowRate = 0.2;

// Trains with rows, one for each sample, at a server that waits for all
// trainers.
class ElasticRows : public ::testing::Test {
 protected:
  ElasticRows() : cluster_(ClusterOf()) {}
  static testing::ClusterOptions ClusterOf() {
    testing::ClusterOptions options;
    options.names = {"w0", "w1", "w2", "server"};
    options.fill = RegisterStock;
    options.on_start = AttachStock;
    return options;
  }
  std::unique_ptr<ParameterServers> MakeServers(int32_t trainers) {
    ServerOptions options;
    options.trainers = trainers;
    options.tables = {{.name = "rows",
                       .width = kElasticRowWidth,
                       .start = RowStart::kNormal,
                       .scale = 1,
                       .seed = 8,
                       .rule = ops::SgdRule{.lr = kElasticRowRate}}};
    auto made =
        ParameterServers::Make(cluster_["server"], {"server"}, options, {});
    EXPECT_THAT(made, IsOk());
    return *std::move(made);
  }
  // Returns the loss of the last step. Trainers that are not the `first` join.
  absl::StatusOr<double> Train(size_t member, const ParameterServers& servers,
                               const std::vector<std::string>& first) {
    rpc::Agent& agent = cluster_[member];
    Generator generator(3 + member);
    nn::Linear model(kElasticRowWidth, 4, generator);
    optim::Sgd sgd(model.Parameters(), {.lr = kElasticRowRate});
    ElasticOptions options;
    options.samples = std::make_shared<data::RandomSampler>(kElasticSamples);
    options.batch = kElasticRowBatch;
    for (const std::string& name : first)
      options.first_workers.push_back(cluster_[name].self());
    ASSIGN_OR_RETURN(const auto training,
                     ElasticTraining::Make(agent, model, sgd, options));
    ASSIGN_OR_RETURN(auto client,
                     ServerClient::Join(agent, servers.directory(),
                                        static_cast<int64_t>(member)));
    ASSIGN_OR_RETURN(const auto rows,
                     Embedding::Make(std::move(client), "rows",
                                     {.step_awaits_trainers = true}));
    double loss = 0;
    while (training->step() < kElasticRowSteps) {
      ASSIGN_OR_RETURN(
          const auto done,
          training->Step([&](Context& ctx, const ElasticTraining::Share& share)
                             -> absl::StatusOr<Variable> {
            ASSIGN_OR_RETURN(
                const Variable x,
                rows->Forward(ctx, Tensor::From(share.samples)).Await());
            std::vector<int64_t> labels;
            for (const int64_t sample : share.samples)
              labels.push_back(sample % 4);
            return autograd::CrossEntropy(model(x), Tensor::From(labels));
          }));
      loss = done.loss;
    }
    return loss;
  }
  Tensor RowsOf(const ParameterServers& servers) {
    const auto reader = ServerClient::Join(cluster_["server"],
                                           servers.directory(), std::nullopt);
    EXPECT_THAT(reader, IsOk());
    std::vector<int64_t> keys(kElasticSamples);
    std::iota(keys.begin(), keys.end(), 0);
    const auto rows = (*reader)->PullRows(0, Tensor::From(keys)).Await();
    EXPECT_THAT(rows, IsOk());
    return rows->Clone();
  }

  testing::LocalCluster cluster_;
};

TEST_F(ElasticRows, AreSteppedAsOneTrainerStepsThemWhoeverJoinsMeanwhile) {
  const auto alone = MakeServers(1);
  const auto expected = Train(0, *alone, {"w0"});
  ASSERT_THAT(expected, IsOk());
  const auto servers = MakeServers(2);
  std::vector<double> losses(3);
  OnEach(3, [&](size_t member) {
    const auto loss = Train(member, *servers, {"w0", "w1"});
    ASSERT_THAT(loss, IsOk());
    losses[member] = *loss;
  });
  for (const double loss : losses) EXPECT_NEAR(loss, *expected, 1e-4);
  EXPECT_TRUE(ops::AllClose(RowsOf(*servers), RowsOf(*alone), 1e-3, 1e-4));
}

}  // namespace
}  // namespace baton::dist
