// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "models/distributed/module.h"
#include "models/distributed/server/embedding.h"
#include "models/nn/linear.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tests/models/distributed/server/server_cluster.h"
#include "tests/support/toy_stages.h"

namespace baton::testing {

inline constexpr int64_t kTableWords = 10, kWordWidth = 4, kWordClasses = 3;

// A model that serves calls, with an embedding of its own, whose rows are at
// parameter servers, beside a parameter that is at its worker.
class WordStage final : public nn::Module {
 public:
  static absl::StatusOr<std::unique_ptr<WordStage>> Make(
      rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory) {
    ASSIGN_OR_RETURN(auto client,
                     dist::ServerClient::Join(call.agent(), directory, 0));
    ASSIGN_OR_RETURN(auto words,
                     dist::Embedding::Make(std::move(client), "words"));
    return std::make_unique<WordStage>(std::move(words));
  }
  explicit WordStage(std::unique_ptr<dist::Embedding> words)
      : words_(std::move(words)),
        linear_(MakeModule<nn::Linear>("linear", kWordWidth, kWordClasses,
                                       generator_)) {}
  Variable Forward(const Variable& x) override { return linear_.Forward(x); }
  absl::StatusOr<Variable> Read(rpc::CallContext& call, const Tensor& keys) {
    ASSIGN_OR_RETURN(const Variable rows, words_->Forward(call, keys).Await());
    return Forward(rows);
  }
  using Exports =
      rpc::Methods<&WordStage::Make, &WordStage::Forward, &WordStage::Read>;

 private:
  const std::unique_ptr<dist::Embedding> words_;
  Generator generator_{3};
  nn::Linear& linear_;
};

inline void AddWordTypes(rpc::Registry& registry) {
  dist::RegisterModule<DenseStage>(registry);
  dist::RegisterModule<WordStage>(registry);
  dist::RegisterOptimizer<optim::Sgd>(registry);
}

inline Variable LossOf(const Variable& y) {
  return autograd::Mean(autograd::Mul(y, y));
}

class EmbeddingTest : public ServerTest {
 protected:
  EmbeddingTest() : ServerTest(AddWordTypes) {}

  void Start(const ops::StepRule& rule,
             dist::Consistency mode = dist::Consistency::kAsynchronous) {
    dist::ServerOptions options;
    options.mode = mode;
    options.trainers = mode == dist::Consistency::kAsynchronous ? 1 : 2;
    options.tables = {{.name = "words",
                       .width = kWordWidth,
                       .start = dist::RowStart::kNormal,
                       .scale = 1,
                       .seed = 5,
                       .limit = 0,
                       .rule = rule}};
    Make(options, {{"x", Tensor::Zeros({4})}});
  }
  std::unique_ptr<dist::Embedding> Words() {
    auto words = dist::Embedding::Make(Join(0), "words");
    EXPECT_THAT(words, IsOk());
    return words.ok() ? *std::move(words) : nullptr;
  }
  // All rows, as the servers have them, in host memory.
  Tensor Rows() {
    std::vector<int64_t> keys(kTableWords);
    std::iota(keys.begin(), keys.end(), 0);
    const auto rows =
        Join(std::nullopt)->PullRows(0, Tensor::From(keys)).Await();
    EXPECT_THAT(rows, IsOk());
    return rows->To(Device::Cpu());
  }
  Tensor SomeKeys() {
    const auto below = [&](unsigned count) {
      return static_cast<int64_t>(random_() % count);
    };
    return Tensor::From<int64_t>({below(3), 4, 4, 9, 3 + below(5), below(10)})
        .Reshape({2, 3});
  }
  std::mt19937 random_{11};
};

}  // namespace baton::testing
