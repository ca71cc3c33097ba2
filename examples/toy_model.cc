// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The smallest cluster: two processes train ToyModel's two halves.
//   baton-run --workers=2 --worker_program=toy_model -- toy_model
// baton-run starts this program three times; the one named "trainer" trains,
// the others serve. With GPUs:
//   baton-run --workers=2 --device=cuda --worker_program=toy_model
//       -- toy_model --device=cuda

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "autograd/distributed/context.h"
#include "autograd/functions/activation.h"
#include "core/ops/arithmetic.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/module.h"
#include "models/nn/linear.h"
#include "models/nn/loss.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"
#include "tools/cluster_flags.h"
#include "tools/command_line.h"
#include "tools/daemon.h"

ABSL_FLAG(int, steps, 20, "training steps");

namespace baton::examples {
namespace {

constexpr char kUsage[] =
    "usage: baton-run --workers=2 --worker_program=toy_model -- toy_model\n"
    "Trains a model of two layers, each in a process of its own; on GPUs with\n"
    "--device=cuda before the --, for the layers, and after it, for the loss.";

// [model]
class Layer final : public nn::Module {
 public:
  Layer(Generator& g, int64_t in, int64_t out)
      : linear_(MakeModule<nn::Linear>("linear", in, out, g)) {}
  static std::unique_ptr<Layer> Make(uint64_t seed, int64_t in, int64_t out) {
    Generator g(seed);
    return std::make_unique<Layer>(g, in, out);
  }
  Variable Forward(const Variable& x) override {
    return autograd::Tanh(linear_.Forward(x));
  }
  using Exports = rpc::Methods<&Layer::Make, &Layer::Forward>;

 private:
  nn::Linear& linear_;
};

absl::StatusOr<double> TrainStep(rpc::Agent& agent,
                                 const dist::Module<Layer>& front,
                                 const dist::Module<Layer>& back,
                                 dist::Optimizer<optim::Sgd>& sgd,
                                 const Tensor& inputs, const Tensor& targets) {
  dist::Context ctx(agent);  // this step's gradients live here
  Future<Variable> hidden = front.Forward(ctx, inputs);  // on worker1
  Future<Variable> outputs = back.Forward(ctx, hidden);  // on worker2
  ASSIGN_OR_RETURN(const Variable y, outputs.Await());
  const Variable loss = nn::MseLoss(y, targets);
  RETURN_IF_ERROR(ctx.Backward(loss));
  RETURN_IF_ERROR(sgd.Step(ctx));
  return loss.tensor().Item();
}
// [end]

rpc::Registry MakeRegistry() {
  rpc::Registry registry;
  dist::Register(registry);
  dist::RegisterModule<Layer>(registry);
  dist::RegisterOptimizer<optim::Sgd>(registry);
  return registry;
}

absl::Status Train(rpc::Agent& agent) {
  using Module = dist::Module<Layer>;
  ASSIGN_OR_RETURN(const Module front,
                   Module::Create(agent, "worker1", 1, 10, 16).Await());
  ASSIGN_OR_RETURN(const Module back,
                   Module::Create(agent, "worker2", 2, 16, 5).Await());
  dist::Optimizer<optim::Sgd> sgd(agent, {.lr = 0.5},
                                  {front.ref(), back.ref()});
  Generator generator(3);
  // Outputs come to this worker's device, where the loss is computed.
  const Device here = agent.self().compute.device;
  const Tensor inputs = RandNormal({20, 10}, generator).To(here);
  const Tensor targets =
      ops::MulScalar(RandNormal({20, 5}, generator), 0.3).To(here);
  const int steps = absl::GetFlag(FLAGS_steps);
  for (int step = 1; step <= steps; ++step) {
    ASSIGN_OR_RETURN(const double loss,
                     TrainStep(agent, front, back, sgd, inputs, targets));
    if (step == 1 || step == steps)
      std::printf("step %d: loss %.5f\n", step, loss);
  }
  return absl::OkStatus();
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_steps) < 1)
    return absl::InvalidArgumentError("--steps must be 1 or more");
  ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                   tools::ClusterOptionsFromFlags("trainer"));
  options.agent.on_start = dist::Attach;
  const bool trains = options.name == "trainer";
  tools::StopSignal stop;
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                   rpc::JoinCluster(std::move(options), MakeRegistry()));
  absl::Status result;
  if (trains) {
    result = CatchErrors([&] { return Train(*agent); });
  } else {
    stop.Wait();
  }
  const absl::Status shutdown = agent->Shutdown();
  return result.ok() ? shutdown : result;
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv, baton::examples::kUsage);
  return baton::tools::ExitCode(baton::examples::Main());
}
