// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A member of an elastic run in a process of its own:
//   elastic_member NAME RENDEZVOUS WORLD_SIZE EPOCHS MEMBERS LEAST
// WORLD_SIZE -1 joins a cluster that has met. LEAST: with fewer members no step
// is taken, and who waits for that long gives up. Trains for EPOCHS and then
// until, at the end of an epoch, there are so many MEMBERS. Writes "step STEP
// of MEMBERS" after each step that has others than the one before, and at the
// end how often each sample has counted, which its parameters know, and what
// shows the optimizer's state:
//   seen LEAST to MOST times in EPOCHS epochs, momentum VALUE after STEPS steps
// then ends when its input does. SIGTERM has it leave after a step.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/arithmetic.h"
#include "autograd/functions/reduce.h"
#include "core/status.h"
#include "models/distributed/data_parallel/elastic.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"

namespace {

using baton::Tensor;
using baton::Variable;
using baton::dist::ElasticTraining;

constexpr int64_t kSamples = 96, kBatch = 32;
constexpr std::chrono::seconds kTimeout{20};

volatile std::sig_atomic_t asked_to_leave = 0;

// One parameter counts samples: each adds 1 / kBatch to its own element in a
// step. The other one moves on at every step, with momentum.
class Counts final : public baton::nn::Module {
 public:
  Counts()
      : seen_(RegisterParameter("seen", Tensor::Zeros({kSamples}))),
        speed_(RegisterParameter("speed", Tensor::Zeros({1}))) {}
  Variable Loss(const std::vector<int64_t>& samples) const {
    Tensor mask = Tensor::Zeros({kSamples});
    for (const int64_t sample : samples)
      mask.data<float>()[sample] = -1.0F / static_cast<float>(samples.size());
    return baton::autograd::Add(
        baton::autograd::Sum(baton::autograd::Mul(seen_, Variable(mask))),
        baton::autograd::MulScalar(baton::autograd::Sum(speed_), -1.0));
  }
  Variable seen() const { return seen_; }
  Variable speed() const { return speed_; }

 private:
  Variable& seen_;
  Variable& speed_;
};

baton::optim::Sgd OptimizerOf(const Counts& model) {
  return baton::optim::Sgd(baton::optim::Sgd::Groups{
      {{model.seen()}, {"seen"}, {.lr = 1}},
      {{model.speed()}, {"speed"}, {.lr = 1, .momentum = 0.5}}});
}

void Tell(const Counts& model, const ElasticTraining& training) {
  std::vector<float> seen = model.seen().tensor().ToVector<float>();
  const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
  std::cout.precision(9);
  std::cout << "seen " << std::lround(*least * kBatch) << " to "
            << std::lround(*most * kBatch) << " times in " << training.epoch()
            << " epochs, momentum " << model.speed().tensor().Item()
            << " after " << training.step() << " steps" << std::endl;
}

absl::Status Train(baton::rpc::Agent& agent, int epochs, int members,
                   int least) {
  Counts model;
  baton::optim::Sgd sgd = OptimizerOf(model);
  ASSIGN_OR_RETURN(
      const auto training,
      ElasticTraining::Make(
          agent, model, sgd,
          {.samples = std::make_shared<baton::data::RandomSampler>(
               kSamples, baton::data::RandomSamplerOptions{.seed = 5}),
           .batch = kBatch,
           .min_members = least,
           .timeout = kTimeout}));
  int present = 0;
  while (training->epoch() < epochs || !training->at_epoch_start() ||
         present != members) {
    ASSIGN_OR_RETURN(const ElasticTraining::Done done,
                     training->Step([&](const ElasticTraining::Share& share) {
                       return model.Loss(share.samples);
                     }));
    if (done.members != present)
      std::cout << "step " << done.step << " of " << done.members << std::endl;
    present = done.members;
    if (asked_to_leave != 0) return absl::OkStatus();
  }
  // Who ends first would be missed in the last step.
  training->group().Barrier().Await().IgnoreError();
  Tell(model, *training);
  return absl::OkStatus();
}

absl::Status Run(char** argv) {
  std::signal(SIGTERM, [](int) { asked_to_leave = 1; });
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  options.agent.worker_threads = 2;
  options.agent.on_start = [](baton::rpc::Agent& agent) {
    baton::rpc::AttachCollectives(agent);
    baton::dist::AttachElastic(agent);
  };
  baton::rpc::Registry registry;
  baton::rpc::RegisterCollectives(registry);
  baton::dist::RegisterElastic(registry);
  ASSIGN_OR_RETURN(const auto agent,
                   JoinCluster(std::move(options), std::move(registry)));
  RETURN_IF_ERROR(Train(*agent, std::atoi(argv[4]), std::atoi(argv[5]),
                        std::atoi(argv[6])));
  while (asked_to_leave == 0 && std::getchar() != EOF) {
  }
  return agent->Shutdown();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const absl::Status status = baton::CatchErrors([&] { return Run(argv); });
  if (!status.ok()) std::cout << status << std::endl;
  return status.ok() ? 0 : 1;
}
