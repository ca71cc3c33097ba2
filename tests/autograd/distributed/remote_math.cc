// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/autograd/distributed/remote_math.h"

#include <utility>

#include "autograd/functions/arithmetic.h"
#include "tests/support/test_device.h"

namespace baton::dist {

Variable Multiply(const Variable& a, const Variable& b) { return a * b; }

std::vector<Variable> Spread(const std::vector<Variable>& values) {
  std::vector<Variable> doubled;
  for (const Variable& value : values) doubled.push_back(value * 2.0);
  return doubled;
}

Future<Variable> PingPong(rpc::CallContext& call, const Variable& x,
                          const std::string& other, int times) {
  if (times == 0) return ReadyFuture<Variable>(x);
  return call.agent()
      .Async<&Multiply>(other, call, x, x)
      .Then([call, other, times](const Variable& square) mutable {
        return PingPong(call, square, other, times - 1);
      });
}

Future<Variable> Travel(rpc::CallContext& call, const Variable& x,
                        std::vector<std::string> route) {
  Variable square = x * x;
  if (route.empty()) return ReadyFuture<Variable>(square);
  std::string next = route.front();
  route.erase(route.begin());
  return call.agent().Async<&Travel>(next, call, square, route);
}

Variable BreakBackward(const Variable& x) {
  Variable y = x * 1.0;
  y.AddHook([](const Tensor&) -> Tensor { Fail("hook", "broken on purpose"); });
  return y;
}

absl::StatusOr<Variable> Refuse(const Variable&) {
  return absl::FailedPreconditionError("not today");
}

Variable Scale::Forward(const Variable& x) { return x * factor_; }

absl::StatusOr<Tensor> Scale::Gradient(rpc::CallContext& call) {
  ASSIGN_OR_RETURN(auto context, ContextOf(call));
  return context->GradientOf(factor_).Dense();
}

void AddRemoteMath(rpc::Registry& registry) {
  registry.AddFunction<&Multiply>()
      .AddFunction<&Spread>()
      .AddFunction<&PingPong>()
      .AddFunction<&Travel>()
      .AddFunction<&BreakBackward>()
      .AddFunction<&Refuse>()
      .Add<Scale>();
}

Variable Leaf(double value) {
  return Variable(test::Put(Tensor::Full({2}, value)), true);
}

double First(const Tensor& tensor) {
  return tensor.defined() ? tensor.Flatten().Select(0, 0).Item() : -1;
}

ThreeWorkers::ThreeWorkers(testing::TrainingCluster::AddTypes add)
    : cluster_(
          3,
          [add](rpc::Registry& registry) {
            AddRemoteMath(registry);
            if (add) add(registry);
          },
          GetParam()) {}

RRef<Scale> ThreeWorkers::MakeScale(const char* worker, double value) {
  return *rpc::Create<Scale>(agent(), worker, value).Await();
}

}  // namespace baton::dist
