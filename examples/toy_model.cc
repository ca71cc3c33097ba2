// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The smallest cluster: two processes train a model's two halves. baton-run
// starts this program three times; the one named "trainer" trains:
//   baton-run --workers=2 --worker_program=toy_model -- toy_model
// On GPUs with --device=cuda before the --, and after it for the loss.

#include <cstdio>

#include "absl/flags/flag.h"
#include "autograd/functions/activation.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/training_log.h"
#include "models/distributed/module.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(int, steps, 20, "training steps");

namespace baton {
namespace {

struct Layer final : nn::Module {
  Layer(uint64_t seed, int64_t in, int64_t out) {
    Generator generator(seed);
    linear = &MakeModule<nn::Linear>("linear", in, out, generator);
  }
  static std::unique_ptr<Layer> Make(uint64_t seed, int64_t in, int64_t out) {
    return std::make_unique<Layer>(seed, in, out);
  }
  Variable Forward(const Variable& x) override {
    return autograd::Tanh(linear->Forward(x));
  }
  using Exports = rpc::Methods<&Layer::Make, &Layer::Forward>;
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
  const Device here = agent.self().compute.device;
  const Tensor inputs = RandNormal({20, 10}, generator).To(here);
  const Tensor targets = RandUniform({20, 5}, -1, 1, generator).To(here);
  examples::TrainingLog log("toy_model", "rows", [](int64_t) { return 0.5; });
  for (int step = 1; step <= absl::GetFlag(FLAGS_steps); ++step) {
    dist::Context ctx(agent);  // this step's gradients live here
    const Future<Variable> hidden = front.Forward(ctx, inputs);  // on worker1
    ASSIGN_OR_RETURN(const Variable y, back.Forward(ctx, hidden).Await());
    const Variable loss = nn::MseLoss(y, targets);
    RETURN_IF_ERROR(ctx.Backward(loss));  // through both
    RETURN_IF_ERROR(sgd.Step(ctx));       // where the parameters are
    std::printf("step %d: loss %.5f\n", step, loss.tensor().Item());
    log.Step(loss.tensor().Item(), 20);  // for --tensorboard
  }
  return absl::OkStatus();
}
// [end]

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::tools::ClusterMain<baton::Layer>(
      argc, argv,
      {.usage = "usage: baton-run --workers=2 --worker_program=toy_model -- "
                "toy_model\nTrains a model of two layers, each in a process "
                "of its own.",
       .train = baton::Train,
       .check = [] { return baton::tools::AtLeast(1, FLAGS_steps); }});
}
