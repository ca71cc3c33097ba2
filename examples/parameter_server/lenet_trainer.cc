// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/parameter_server/lenet_trainer.h"

#include <algorithm>
#include <utility>

#include "autograd/tensors_of.h"
#include "core/status.h"
#include "examples/support/pushing.h"
#include "models/nn/loss.h"

namespace baton::examples {
namespace {

constexpr int64_t kLastLosses = 10;

}  // namespace

std::vector<std::pair<std::string, Tensor>> NamedValues(
    const nn::Module& module) {
  std::vector<std::pair<std::string, Tensor>> values;
  for (const auto& [name, parameter] : module.NamedParameters())
    values.emplace_back(name, parameter.tensor());
  return values;
}

double Accuracy(models::LeNet& model, const Digits& digits) {
  return static_cast<double>(CountRight(model, digits)) /
         static_cast<double>(digits.size());
}

absl::StatusOr<std::unique_ptr<LeNetTrainer>> LeNetTrainer::Make(
    rpc::CallContext& call, const LeNetTask& task,
    const RRef<dist::ServerDirectory>& directory, int64_t rank) {
  ASSIGN_OR_RETURN(SplitDigits digits, LoadDigits(task.data));
  return std::unique_ptr<LeNetTrainer>(new LeNetTrainer(
      call.agent(), task, directory, rank, std::move(digits.training)));
}

LeNetTrainer::LeNetTrainer(rpc::Agent& agent, const LeNetTask& task,
                           RRef<dist::ServerDirectory> directory, int64_t rank,
                           Digits digits)
    : agent_(agent),
      task_(task),
      directory_(std::move(directory)),
      rank_(rank),
      digits_(std::move(digits)),
      generator_(task.seed),
      model_(generator_) {}

// The trainers divide each epoch's images, which all order in the same way. One
// that joins later takes the same images as one of the first trainers.
Digits LeNetTrainer::Batch(int64_t push) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < task_.batch; ++i) {
    const int64_t place =
        (push * task_.batch + i) * task_.trainers + rank_ % task_.trainers;
    if (place / digits_.size() != epoch_) {
      epoch_ = place / digits_.size();
      Generator order(task_.seed + static_cast<uint64_t>(epoch_) + 1);
      order_ = RandPermutation(digits_.size(), order).ToVector<int64_t>();
    }
    samples.push_back(order_[static_cast<size_t>(place % digits_.size())]);
  }
  return digits_.Take(samples);
}

absl::StatusOr<double> LeNetTrainer::Step(dist::ServerClient& client,
                                          const Digits& batch) {
  model_.ZeroGrad();
  const Variable loss =
      nn::CrossEntropy(model_.Forward(batch.images), batch.labels);
  loss.Backward();
  ASSIGN_OR_RETURN(
      const dist::Pulled pulled,
      client.PushPull(GradientsOf(model_.Parameters())).Await(kNoLimit));
  pulled.CopyTo(TensorsOf(model_.Parameters()));
  return loss.tensor().Item();
}

absl::StatusOr<double> LeNetTrainer::Train(rpc::CallContext& call,
                                           int64_t first, int64_t pushes) {
  ASSIGN_OR_RETURN(const auto client,
                   dist::ServerClient::Join(
                       agent_, directory_, rank_,
                       {.timeout = {}, .compression = task_.compression}));
  ASSIGN_OR_RETURN(const dist::Pulled pulled, client->Pull().Await(kNoLimit));
  pulled.CopyTo(TensorsOf(model_.Parameters()));
  double last = 0;
  const int64_t counted = std::min(pushes, kLastLosses);
  for (int64_t push = 0; push < pushes; ++push) {
    RETURN_IF_ERROR(call.token().reason());
    ASSIGN_OR_RETURN(const double loss, Step(*client, Batch(first + push)));
    if (push >= pushes - counted) last += loss / static_cast<double>(counted);
  }
  RETURN_IF_ERROR(client->Leave());
  return last;
}

absl::StatusOr<std::unique_ptr<GradientPusher>> GradientPusher::Make(
    rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory,
    int64_t rank) {
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(call.agent(), directory, rank));
  return std::unique_ptr<GradientPusher>(new GradientPusher(std::move(client)));
}

absl::StatusOr<double> GradientPusher::Run(rpc::CallContext& call,
                                           int64_t pushes) {
  return Rate(call, pushes, true, true);
}

absl::StatusOr<double> GradientPusher::Push(rpc::CallContext& call,
                                            int64_t pushes) {
  return Rate(call, pushes, true, false);
}

absl::StatusOr<double> GradientPusher::Pull(rpc::CallContext& call,
                                            int64_t pulls) {
  return Rate(call, pulls, false, true);
}

absl::StatusOr<double> GradientPusher::Rate(rpc::CallContext& call,
                                            int64_t trades, bool push,
                                            bool pull) {
  dist::Trade trade{.push = push, .values = pull};
  if (push) {
    for (const dist::DenseKey& key : client_->layout().keys)
      trade.gradients.push_back(Tensor::Ones(key.shape));
  }
  return PushesPerSecond(trades, [&] {
    RETURN_IF_ERROR(call.token().reason());
    return client_->Do(trade).Await(kNoLimit).status();
  });
}

void RegisterTrainers(rpc::Registry& registry) {
  registry.Add<LeNetTrainer>();
  registry.Add<GradientPusher>();
}

}  // namespace baton::examples
