// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The smallest cluster: two processes train a model's two halves. baton-run
// starts this program three times; the one named "trainer" trains:
//   baton-run --workers=2 --worker_program=toy_model -- toy_model
// On GPUs with --device=cuda before the --, and after it for the loss.

#include <cstdio>

#include "examples/support/training_log.h"
#include "tools/program.h"

ABSL_FLAG(int, steps, 20, "training steps");

using namespace baton;

struct Layer final : nn::Module {
  Layer(uint64_t seed, int64_t in, int64_t out) {
    Generator generator(seed);
    linear = &MakeModule<nn::Linear>("linear", in, out, generator);
  }
  Variable Forward(const Variable& x) override {
    return autograd::Tanh(linear->Forward(x));
  }
  using Exports = rpc::Methods<rpc::kConstructor<uint64_t, int64_t, int64_t>,
                               &Layer::Forward>;
  nn::Linear* linear = nullptr;
};

// [train]
absl::Status Train(rpc::Agent& agent) {
  using Module = dist::Module<Layer>;
  ASSIGN_OR_RETURN(const Module front,
                   Module::Create(agent, "worker1", 1, 10, 16).Await());
  ASSIGN_OR_RETURN(const Module back,
                   Module::Create(agent, "worker2", 2, 16, 5).Await());
  dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.5}, {front, back});
  Generator generator(3);
  const Tensor inputs = RandNormal({20, 10}, generator);
  const Tensor targets = RandUniform({20, 5}, -1, 1, generator);
  examples::TrainingLog log("toy_model", "rows", 0.5);  // for --tensorboard
  for (int step = 1; step <= absl::GetFlag(FLAGS_steps); ++step) {
    dist::Context ctx(agent);  // this step's gradients live here
    const Future<Variable> hidden = front.Forward(ctx, inputs);  // on worker1
    ASSIGN_OR_RETURN(const Variable y, back.Forward(ctx, hidden).Await());
    const Variable loss = nn::MseLoss(y, targets.To(y.tensor().device()));
    RETURN_IF_ERROR(ctx.Backward(loss));  // through both
    RETURN_IF_ERROR(sgd.Step(ctx));       // where the parameters are
    std::printf("step %d: loss %.5f\n", step, loss.tensor().Item());
    log.Step(loss.tensor().Item(), 20);
  }
  return absl::OkStatus();
}
// [end]

int main(int argc, char** argv) {
  return tools::ClusterMain<Layer>(
      argc, argv,
      {.workers = 2,
       .about = "Trains a model of two layers, each in a process of its own.",
       .train = Train,
       .check = [] { return tools::AtLeast(1, FLAGS_steps); }});
}
