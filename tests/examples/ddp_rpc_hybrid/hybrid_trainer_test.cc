// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/ddp_rpc_hybrid/hybrid_trainer.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "models/distributed/server/client.h"
#include "models/distributed/stock.h"
#include "models/nn/embedding.h"
#include "optim/sgd.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::examples {
namespace {

using testing::IsOk;

constexpr int64_t kColumns = 6;
constexpr int kSteps = 4;
constexpr double kRate = 0.5;

// All of the model in this process, on the columns of all trainers.
class Whole {
 public:
  Whole(const WordModelOptions& options, const Tensor& rows)
      : generator_(options.SeedOf(WordModelOptions::Part::kLstm)),
        table_(options.vocabulary, options.width, generator_),
        decoder_(options) {
    Generator generator(options.SeedOf(WordModelOptions::Part::kLstm));
    lstm_ = std::make_unique<nn::LSTM>(options.width, options.width, generator);
    Variable(table_.weight()).set_tensor(rows.Clone());
    std::vector<Variable> all = Rest();
    all.push_back(table_.weight());
    sgd_ = std::make_unique<optim::Sgd>(all, optim::SgdOptions{.lr = kRate});
  }
  double Step(const data::TokenBatch& piece) {
    const auto out = lstm_->Run(table_(piece.ids), state_);
    state_ = {.h = out.last.h.Detach(), .c = out.last.c.Detach()};
    const Variable loss = decoder_.Loss(out.y, piece.targets);
    sgd_->ZeroGrad();
    loss.Backward();
    sgd_->Step();
    return loss.tensor().Item();
  }
  std::vector<Variable> Rest() const {
    std::vector<Variable> all = lstm_->Parameters();
    for (const Variable& each : decoder_.Parameters()) all.push_back(each);
    return all;
  }
  const Tensor& rows() const { return table_.weight().tensor(); }

 private:
  Generator generator_;
  nn::Embedding table_;
  std::unique_ptr<nn::LSTM> lstm_;
  WordDecoder decoder_;
  std::unique_ptr<optim::Sgd> sgd_;
  nn::RnnState state_;
};

class Hybrid : public ::testing::Test {
 protected:
  Hybrid() {
    testing::ClusterOptions options;
    options.names = {"alice", "server1", "server2", "t0", "t1"};
    options.fill = [](rpc::Registry& registry) {
      dist::RegisterStock(registry);
      RegisterHybrid(registry);
    };
    options.on_start = dist::AttachStock;
    cluster_ = std::make_unique<testing::LocalCluster>(options);
    std::string text;
    Generator generator(3);
    for (const int64_t word :
         RandInt(0, 9, {400}, generator).ToVector<int64_t>())
      text += std::string(1, static_cast<char>('a' + word)) + " ";
    task_.data = folder_.Write("text", text);
    task_.model = {.vocabulary = 100, .width = 8, .dropout = 0, .seed = 4};
    task_.optimizer = {.kind = "sgd", .lr = kRate};
    task_.columns = kColumns;
    task_.length = 5;
    task_.trainers = {(*cluster_)["t0"].self(), (*cluster_)["t1"].self()};
    const auto texts = ReadWords(task_.data, "", task_.model.vocabulary);
    EXPECT_THAT(texts, IsOk());
    texts_ = *texts;
  }

  rpc::Agent& alice() { return (*cluster_)["alice"]; }
  void MakeServers() {
    dist::ServerOptions options;
    options.trainers = 2;
    options.tables = {{.name = kWords,
                       .width = task_.model.width,
                       .rows = texts_.vocabulary,
                       .start = dist::RowStart::kNormal,
                       .scale = 1,
                       .seed = 8,
                       .rule = optim::AnyOptions{.kind = "sgd", .lr = kRate}}};
    auto made = dist::ParameterServers::Make(alice(), {"server1", "server2"},
                                             options, {});
    ASSERT_THAT(made, IsOk());
    servers_ = *std::move(made);
  }
  Tensor Rows() {
    const auto reader =
        dist::ServerClient::Join(alice(), servers_->directory(), std::nullopt);
    EXPECT_THAT(reader, IsOk());
    std::vector<int64_t> keys(static_cast<size_t>(texts_.vocabulary));
    std::iota(keys.begin(), keys.end(), 0);
    const auto rows = (*reader)->PullRows(0, Tensor::From(keys)).Await();
    EXPECT_THAT(rows, IsOk());
    return rows->Clone();
  }

  const testing::TempFolder folder_;
  HybridTask task_;
  WordTexts texts_;
  std::unique_ptr<testing::LocalCluster> cluster_;
  std::unique_ptr<dist::ParameterServers> servers_;
};

// SGD's steps are the gradients.
TEST_F(Hybrid, StepsAsOneProcessDoesOnAllColumnsAndKeepsCopiesEqual) {
  MakeServers();
  WordModelOptions options = task_.model;
  options.vocabulary = texts_.vocabulary;
  Whole whole(options, Rows());
  std::vector<Future<RRef<HybridTrainer>>> making;
  for (const rpc::WorkerInfo& worker : task_.trainers) {
    making.push_back(rpc::Create<HybridTrainer>(
        alice(), worker.name, task_, servers_->directory(),
        static_cast<int64_t>(making.size())));
  }
  auto trainers = WaitAll(making).Await();
  making.clear();
  ASSERT_THAT(trainers, IsOk());
  const TextColumns columns(texts_.training, kColumns);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Future<HybridStep>> steps;
    for (const auto& trainer : *trainers)
      steps.push_back(trainer.Async<&HybridTrainer::Step>());
    const auto both = WaitAll(steps).Await();
    ASSERT_THAT(both, IsOk());
    const double loss = whole.Step(columns.Piece(step, task_.length));
    for (const HybridStep& told : *both) {
      EXPECT_EQ(told.step, step);
      EXPECT_EQ(told.trainers, 2);
      EXPECT_NEAR(told.loss, loss, 1e-5);
    }
  }
  std::vector<std::vector<Tensor>> copies;
  for (const auto& trainer : *trainers) {
    const auto copy = trainer.Async<&HybridTrainer::Parameters>().Await();
    ASSERT_THAT(copy, IsOk());
    copies.push_back(*copy);
  }
  const std::vector<Variable> expected = whole.Rest();
  ASSERT_EQ(copies[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(ops::BitEqual(copies[0][i], copies[1][i])) << i;
    EXPECT_TRUE(ops::AllClose(copies[0][i], expected[i].tensor(), 1e-4, 1e-5))
        << i;
  }
  EXPECT_TRUE(ops::AllClose(Rows(), whole.rows(), 1e-4, 1e-5));
  trainers->clear();
  servers_.reset();
  cluster_->ExpectIdle();
}

}  // namespace
}  // namespace baton::examples
