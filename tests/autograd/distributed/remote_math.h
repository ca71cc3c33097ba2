// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/distributed/context.h"
#include "tests/support/test_device.h"
#include "tests/support/training_cluster.h"

// What the tests of distributed autograd call on each other's workers.
namespace baton::dist {

Variable Multiply(const Variable& a, const Variable& b);

// Each times two.
std::vector<Variable> Spread(const std::vector<Variable>& values);

// Multiplies there, with the product coming back here and going there again.
Future<Variable> PingPong(rpc::CallContext& call, const Variable& x,
                          const std::string& other, int times);

// Goes to the workers of `route` in turn, squaring at each.
Future<Variable> Travel(rpc::CallContext& call, const Variable& x,
                        std::vector<std::string> route);

// Its backward fails.
Variable BreakBackward(const Variable& x);

absl::StatusOr<Variable> Refuse(const Variable& x);

// A parameter that lives at its worker.
class Scale {
 public:
  explicit Scale(double value)
      : factor_(test::Put(Tensor::Full({2}, value)), true) {}
  Variable Forward(const Variable& x);
  // Undefined where the context has none.
  absl::StatusOr<Tensor> Gradient(rpc::CallContext& call);
  bool HasGrad() const { return factor_.grad().defined(); }
  void Lower(DType dtype) {
    factor_ = Variable(factor_.tensor().To(dtype), true);
  }

  using Exports =
      rpc::Methods<rpc::kConstructor<double>, &Scale::Forward, &Scale::Gradient,
                   &Scale::HasGrad, &Scale::Lower>;

 private:
  Variable factor_;
};

// All of these.
void AddRemoteMath(rpc::Registry& registry);

Variable Leaf(double value);         // of two elements
double First(const Tensor& tensor);  // element; -1 of none

// Alice, bob and carol, with what is above, over each transport.
class ThreeWorkers : public ::testing::TestWithParam<testing::TransportKind> {
 protected:
  explicit ThreeWorkers(testing::TrainingCluster::AddTypes add = nullptr);
  rpc::Agent& agent() { return cluster_.alice(); }
  RRef<Scale> MakeScale(const char* worker, double value);
  testing::TrainingCluster cluster_;
};

}  // namespace baton::dist
