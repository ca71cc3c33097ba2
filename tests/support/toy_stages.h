// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "autograd/distributed/context.h"
#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/shape.h"
#include "core/future.h"
#include "core/random.h"
#include "models/distributed/module.h"
#include "models/nn/batch_norm.h"
#include "models/nn/dropout.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

// Small modules that tests put on workers.
namespace baton::testing {

// Computes relu(x W + b), or x W + b.
class DenseStage final : public nn::Module {
 public:
  DenseStage(int64_t in, int64_t out, bool relu, uint64_t seed)
      : generator_(seed),
        linear_(MakeModule<nn::Linear>("linear", in, out, generator_)),
        relu_(relu) {}
  Variable Forward(const Variable& x) override {
    Variable y = linear_.Forward(x);
    return relu_ ? autograd::Relu(y) : y;
  }
  using Exports =
      rpc::Methods<rpc::kConstructor<int64_t, int64_t, bool, uint64_t>,
                   &DenseStage::Forward>;

 private:
  Generator generator_;
  nn::Linear& linear_;
  const bool relu_;
};

// Computes dropout(norm(x W + b)) over images of one pixel. Its forward changes
// running statistics and, unless p is 0, draws random numbers.
class NoisyStage final : public nn::Module {
 public:
  NoisyStage(int64_t width, double p, uint64_t seed)
      : generator_(seed),
        width_(width),
        linear_(MakeModule<nn::Linear>("linear", width, width, generator_)),
        norm_(MakeModule<nn::BatchNorm2d>("norm", width)),
        dropout_(p > 0 ? &MakeModule<nn::Dropout>("dropout", p, seed)
                       : nullptr) {}
  Variable Forward(const Variable& x) override {
    const int64_t rows = x.tensor().dim(0);
    const Variable images =
        autograd::Reshape(linear_.Forward(x), {rows, width_, 1, 1});
    const Variable y = autograd::Reshape(norm_.Forward(images), {rows, width_});
    return dropout_ == nullptr ? y : dropout_->Forward(y);
  }
  using Exports = rpc::Methods<rpc::kConstructor<int64_t, double, uint64_t>,
                               &NoisyStage::Forward>;

 private:
  Generator generator_;
  const int64_t width_;
  nn::Linear& linear_;
  nn::BatchNorm2d& norm_;
  nn::Dropout* const dropout_;
};

// Returns its input, and has the given fault in one call of Forward.
class FragileStage final : public nn::Module {
 public:
  enum class Fault { kNone, kForward, kBackward, kWait, kWaitInBackward };
  FragileStage(Fault fault, int at_call) : fault_(fault), at_call_(at_call) {}

  Variable Forward(const Variable& x) override {
    Variable y = x * 1.0;
    if (calls_++ != at_call_) return y;
    if (fault_ == Fault::kForward) Fail("fragile", "forward broke");
    if (fault_ == Fault::kBackward) {
      y.AddHook(
          [](const Tensor&) -> Tensor { Fail("fragile", "backward broke"); });
    }
    if (fault_ == Fault::kWait) Wait();
    if (fault_ == Fault::kWaitInBackward) {
      y.AddHook([](const Tensor& gradient) {
        Wait();
        return gradient;
      });
    }
    return y;
  }

  // Where kWait and kWaitInBackward wait, for at most nine seconds. Shared by
  // all stages of the test's process; ResetGate makes a new one.
  struct Gate {
    Promise<void> reached;
    Promise<void> opened;
  };
  static Gate& TheGate() { return *TheGatePointer(); }
  static void ResetGate() { TheGatePointer() = std::make_unique<Gate>(); }

  using Exports =
      rpc::Methods<rpc::kConstructor<Fault, int>, &FragileStage::Forward>;

 private:
  static void Wait() {
    Gate& gate = TheGate();
    gate.reached.Set(absl::OkStatus());
    gate.opened.future().Await(std::chrono::seconds(9)).IgnoreError();
  }
  static std::unique_ptr<Gate>& TheGatePointer() {
    static std::unique_ptr<Gate> gate = std::make_unique<Gate>();
    return gate;
  }
  const Fault fault_;
  const int at_call_;
  int calls_ = 0;
};

// Returns the gradients in the call's context, one for each parameter;
// undefined if it has none.
template <typename M>
absl::StatusOr<std::vector<Tensor>> GradientsAt(rpc::CallContext& call,
                                                const RRef<M>& module) {
  ASSIGN_OR_RETURN(auto local, module.LocalValue());
  ASSIGN_OR_RETURN(auto context, dist::ContextOf(call));
  std::vector<Tensor> grads;
  for (const Variable& parameter : local->Parameters()) {
    grads.push_back(context->GradientOf(parameter).Dense());
  }
  return grads;
}

}  // namespace baton::testing
