// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// [trainer]
#include <cstdio>
#include <memory>
#include <utility>

#include "baton/tools/program.h"
#include "part.h"

namespace {

using namespace baton;
using Adam = dist::Optimizer<optim::Adam>;

// One step: forward, backward and update, all where the parts are.
absl::StatusOr<double> Step(rpc::Agent& agent, const dist::Module<Part>& front,
                            const dist::Module<Part>& back, Adam& adam,
                            const Tensor& inputs, const Tensor& targets) {
  dist::Context context(agent);  // the gradients of this step
  Future<Variable> hidden = front.Forward(context, inputs);   // at worker1
  Future<Variable> outputs = back.Forward(context, hidden);   // at worker2
  BATON_ASSIGN_OR_RETURN(const Variable y, outputs.Await());  // comes here
  const Variable loss = nn::MseLoss(y, targets);
  BATON_RETURN_IF_ERROR(context.Backward(loss));
  BATON_RETURN_IF_ERROR(adam.Step(context));
  return loss.tensor().Item();
}
// [end]

// [pipeline]
absl::Status TrainPipelined(rpc::Agent& agent, const dist::Module<Part>& front,
                            const dist::Module<Part>& back, Adam& adam,
                            const Tensor& inputs, const Tensor& targets) {
  BATON_ASSIGN_OR_RETURN(
      auto pipeline,
      dist::Pipeline::Make(agent, {.split_size = 64, .loss = dist::Loss::kMse},
                           {front, back}));
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    BATON_ASSIGN_OR_RETURN(auto result, pipeline->Step(adam, inputs, targets));
    loss = result.loss;
  }
  std::printf("after 300 pipelined steps: loss %.5f\n", loss);
  return absl::OkStatus();
}
// [end]

// [train]
absl::Status Train(rpc::Agent& agent) {
  using Module = dist::Module<Part>;
  BATON_ASSIGN_OR_RETURN(
      const Module front,
      Module::Create(agent, "worker1", 1, 1, 32, 32).Await());
  BATON_ASSIGN_OR_RETURN(
      const Module back,
      Module::Create(agent, "worker2", 2, 32, 32, 1).Await());
  Adam adam(agent, {.lr = 0.003}, {front, back});

  Generator generator(3);  // y = sin(x), 256 points
  const Tensor x = RandUniform({256, 1}, -3, 3, generator);
  const Device here = agent.self().compute.device;
  const Tensor inputs = x.To(here);
  const Tensor targets = ops::Sin(x).To(here);
  for (int step = 1; step <= 300; ++step) {
    BATON_ASSIGN_OR_RETURN(const double loss,
                           Step(agent, front, back, adam, inputs, targets));
    if (step % 100 == 1 || step == 300)
      std::printf("step %d: loss %.5f\n", step, loss);
  }
  return TrainPipelined(agent, front, back, adam, inputs, targets);
}

absl::Status Main() {
  BATON_ASSIGN_OR_RETURN(rpc::ClusterOptions options,
                         tools::ClusterOptionsFromFlags("trainer"));
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Agent> agent,
                         dist::Join<Part>(std::move(options)));
  const absl::Status trained = CatchErrors([&] { return Train(*agent); });
  const absl::Status left = agent->Shutdown();
  return trained.ok() ? left : trained;
}

}  // namespace

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv,
                                      "usage: baton-run ... -- trainer");
  return baton::tools::ExitCode(Main());
}
// [end]
