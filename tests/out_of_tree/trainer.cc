// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Trains a Perceptron that lives at worker1:
//   baton-run --workers=1 --worker_flags=--plugin=libperceptron.so -- trainer

#include <cstdio>
#include <memory>
#include <utility>

#include "baton/autograd/distributed/context.h"
#include "baton/core/random.h"
#include "baton/core/status.h"
#include "baton/models/distributed/join.h"
#include "baton/models/distributed/module.h"
#include "baton/models/nn/loss.h"
#include "baton/optim/distributed/optimizer.h"
#include "baton/optim/sgd.h"
#include "baton/rpc/cluster.h"
#include "baton/tools/cluster_flags.h"
#include "baton/tools/command_line.h"
#include "perceptron.h"

namespace {

using baton::Tensor;
using baton::Variable;

absl::StatusOr<double> Step(baton::rpc::Agent& agent,
                            const baton::dist::Module<Perceptron>& model,
                            baton::dist::Optimizer<baton::optim::Sgd>& sgd,
                            const Tensor& inputs, const Tensor& targets) {
  baton::dist::Context context(agent);
  BATON_ASSIGN_OR_RETURN(const Variable outputs,
                         model.Forward(context, inputs).Await());
  const Variable loss = baton::nn::MseLoss(outputs, targets);
  BATON_RETURN_IF_ERROR(context.Backward(loss));
  BATON_RETURN_IF_ERROR(sgd.Step(context));
  return loss.tensor().Item();
}

absl::Status Train(baton::rpc::Agent& agent) {
  using Module = baton::dist::Module<Perceptron>;
  BATON_ASSIGN_OR_RETURN(const Module model,
                         Module::Create(agent, "worker1", 1, 8, 16, 4).Await());
  baton::dist::Optimizer<baton::optim::Sgd> sgd(agent, {.lr = 0.5}, {model});
  baton::Generator generator(2);
  const Tensor inputs = RandNormal({32, 8}, generator);
  const Tensor targets = Tensor::Zeros({32, 4});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    BATON_ASSIGN_OR_RETURN(last, Step(agent, model, sgd, inputs, targets));
    if (step == 0) first = last;
  }
  std::printf("loss %.4f, after 20 steps %.4f\n", first, last);
  if (last < first / 2) return absl::OkStatus();
  return absl::InternalError("it does not learn");
}

absl::Status Main() {
  BATON_ASSIGN_OR_RETURN(baton::rpc::ClusterOptions options,
                         baton::tools::ClusterOptionsFromFlags("trainer"));
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<baton::rpc::Agent> agent,
                         baton::dist::Join<Perceptron>(std::move(options)));
  const absl::Status trained =
      baton::CatchErrors([&] { return Train(*agent); });
  const absl::Status left = agent->Shutdown();
  return trained.ok() ? left : trained;
}

}  // namespace

int main(int argc, char** argv) {
  baton::tools::ParseFlagsAloneOrExit(argc, argv,
                                      "usage: baton-run ... -- trainer");
  return baton::tools::ExitCode(Main());
}
