// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/ops/arithmetic.h"
#include "models/distributed/module.h"
#include "optim/distributed/optimizer.h"
#include "optim/distributed/registry.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_stages.h"
#include "tests/support/training_cluster.h"

namespace baton::dist {

inline void AddOptimizerTypes(rpc::Registry& registry) {
  RegisterModule<testing::DenseStage>(registry);
  RegisterOptimizers(registry);
}

// Two layers, at bob and carol, and their twins here.
class OptimizerTest : public ::testing::Test {
 protected:
  OptimizerTest()
      : cluster_(3, AddOptimizerTypes), x_(test::Put(Tensor::Ones({3, 4}))) {
    for (int i = 0; i < 2; ++i) {
      local_.push_back(std::make_unique<testing::DenseStage>(4, 4, false, 7));
      local_.back()->To(test::TestDevice());
      remote_.push_back(*Module<testing::DenseStage>::Create(
                             agent(), i == 0 ? "bob" : "carol", 4, 4, false, 7)
                             .Await());
    }
  }
  rpc::Agent& agent() { return cluster_.alice(); }
  std::vector<ParameterSource> Sources() {
    return {remote_[0].ref(), remote_[1].ref()};
  }
  std::vector<Variable> LocalParameters() {
    std::vector<Variable> all = local_[0]->Parameters();
    for (const Variable& p : local_[1]->Parameters()) all.push_back(p);
    return all;
  }

  // `layers` of the two take part in the loss.
  void Backward(const Context& ctx, int layers = 2) {
    Variable y(x_);
    for (int i = 0; i < layers; ++i) {
      auto next = remote_[static_cast<size_t>(i)].Forward(ctx, y).Await();
      ASSERT_TRUE(next.ok()) << next.status();
      y = *next;
    }
    absl::Status status =
        const_cast<Context&>(ctx).Backward(autograd::Sum(y * y));
    ASSERT_TRUE(status.ok()) << status;
  }
  void BackwardLocally(int layers = 2) {
    Variable y(x_);
    for (int i = 0; i < layers; ++i) {
      y = local_[static_cast<size_t>(i)]->Forward(y);
    }
    autograd::Sum(y * y).Backward();
  }
  void ExpectEqualParameters() {
    for (size_t i = 0; i < 2; ++i) {
      auto state = *remote_[i].StateDict().Await();
      for (const auto& [name, tensor] : local_[i]->StateDict()) {
        EXPECT_TRUE(ops::BitEqual(state.at(name), tensor))
            << "layer " << i << " " << name;
      }
    }
  }

  template <typename O>
  void ExpectSameAsLocal(const typename O::Options& options) {
    Optimizer<O> remote(agent(), options, Sources());
    O local(LocalParameters(), options);
    ExpectSameSteps(remote, local);
  }
  template <typename O>
  void ExpectSameSteps(Optimizer<O>& remote, O& local) {
    for (int step = 0; step < 4; ++step) {
      // The second step leaves the second layer without a gradient.
      const int layers = step == 1 ? 1 : 2;
      Context ctx(agent());
      Backward(ctx, layers);
      absl::Status status = remote.Step(ctx);
      ASSERT_TRUE(status.ok()) << status;
      local.ZeroGrad();
      BackwardLocally(layers);
      local.Step();
      ExpectEqualParameters();
    }
  }

  testing::TrainingCluster cluster_;
  const Tensor x_;
  std::vector<std::shared_ptr<testing::DenseStage>> local_;
  std::vector<Module<testing::DenseStage>> remote_;
};

}  // namespace baton::dist
