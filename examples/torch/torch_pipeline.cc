// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains modules of PyTorch at two workers as a pipeline:
//   baton-run --workers=2 --worker_program=torch_pipeline -- torch_pipeline
// For GPUs, give --device=cuda before the -- for the modules, and after it for
// the data.

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/flags/flag.h"
#include "core/random.h"
#include "core/status.h"
#include "examples/support/training_log.h"
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "models/torch/torch_module.h"
#include "optim/adam.h"
#include "optim/distributed/optimizer.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(int, steps, 40, "training steps");

namespace baton {
namespace {

// [module]
struct Block final : nn::TorchModule {
  Block(int64_t in, int64_t out)
      : TorchModule(torch::nn::Sequential(torch::nn::Linear(in, out),
                                          torch::nn::BatchNorm1d(out),
                                          torch::nn::Tanh())) {}
  static std::unique_ptr<Block> Make(uint64_t seed, int64_t in, int64_t out) {
    torch::manual_seed(seed);
    return std::make_unique<Block>(in, out);
  }
  using Exports = rpc::Methods<&Block::Make, &Block::Forward>;
};
// [end]

// [train]
absl::Status Train(rpc::Agent& agent) {
  using Module = dist::Module<Block>;
  ASSIGN_OR_RETURN(const Module front,
                   Module::Create(agent, "worker1", 1, 16, 32).Await());
  ASSIGN_OR_RETURN(const Module back,
                   Module::Create(agent, "worker2", 2, 32, 4).Await());
  ASSIGN_OR_RETURN(
      const auto pipeline,
      dist::Pipeline::Make(agent, {.split_size = 16}, {front, back}));
  dist::Optimizer<optim::Adam> adam(agent, {.lr = 0.02}, {front, back});
  Generator generator(3);
  const Device here = agent.self().compute.device;
  const Tensor inputs = RandNormal({64, 16}, generator).To(here);
  const Tensor labels = RandInt(0, 4, {64}, generator).To(here);
  examples::TrainingLog log("torch_pipeline", "rows", 0.02);
  for (int step = 1; step <= absl::GetFlag(FLAGS_steps); ++step) {
    ASSIGN_OR_RETURN(const auto result, pipeline->Step(adam, inputs, labels));
    if (step % 10 == 0) std::printf("step %d: loss %.4f\n", step, result.loss);
    log.Step(result.loss, 64);  // for --tensorboard
  }
  ASSIGN_OR_RETURN(const nn::StateMap state, front.StateDict().Await());
  for (const auto& [name, tensor] : state)
    std::printf("%s %s\n", name.c_str(), tensor.shape().ToString().c_str());
  return absl::OkStatus();
}
// [end]

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::tools::ClusterMain<baton::Block>(
      argc, argv,
      {.workers = 2,
       .about = "Trains two modules of PyTorch as a pipeline over two workers.",
       .train = baton::Train,
       .check = [] { return baton::tools::AtLeast(1, FLAGS_steps); }});
}
