// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/elastic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "core/status.h"

namespace baton::dist {
namespace {

constexpr char kBuffer[] = "buffer:", kGenerator[] = "generator:";

absl::Status Check(const nn::Module& module, const ElasticOptions& options) {
  if (options.samples == nullptr || options.samples->size() < 1 ||
      options.batch < 1) {
    return absl::InvalidArgumentError(
        "an elastic run needs samples and a batch of 1 or more");
  }
  if (options.min_members < 1 || options.max_members < options.min_members) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_members is 1 to max_members, not ",
                     options.min_members, " of ", options.max_members));
  }
  if (options.data_parallel.uneven_inputs ||
      options.data_parallel.shard_optimizer) {
    return absl::InvalidArgumentError(
        "elastic training goes neither with uneven_inputs nor with "
        "shard_optimizer");
  }
  if (module.device().is_cuda()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "elastic training is for CPUs, not for ", module.device().ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElasticTraining>> ElasticTraining::Make(
    rpc::Agent& agent, nn::Module& module, optim::Optimizer& optimizer,
    ElasticOptions options) {
  RETURN_IF_ERROR(Check(module, options));
  ASSIGN_OR_RETURN(auto handlers, ElasticHandlers::Of(agent));
  RETURN_IF_ERROR(handlers->Open(options.run));
  std::unique_ptr<ElasticTraining> training(new ElasticTraining(
      agent, module, optimizer, std::move(options), std::move(handlers)));
  RETURN_IF_ERROR(CatchErrors([&] { return training->Enter(); }));
  return training;
}

bool ElasticTraining::IsLoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

ElasticTraining::~ElasticTraining() { handlers_->Close(options_.run); }

absl::StatusOr<ElasticTraining::Done> ElasticTraining::Step(const Loss& loss) {
  for (;;) {
    RETURN_IF_ERROR(CatchErrors([&] { return Settle(); }));
    const nn::StateMap before = Undoable();
    auto done = CatchErrors([&] { return TryStep(loss); });
    if (done.ok()) return done;
    RETURN_IF_ERROR(CatchErrors([&] { return Undo(before); }));
    if (IsLoss(done.status()) && !group_->status().ok()) continue;
    // The others wait for gradients that this member will not send. The abort
    // ends their wait and says that this member is still there.
    group_->Abort(absl::AbortedError(
        absl::StrCat("elastic training: ", done.status().message())));
    return done.status();
  }
}

absl::StatusOr<ElasticTraining::Done> ElasticTraining::TryStep(
    const Loss& loss) {
  const int64_t all = std::min<int64_t>(
      options_.batch, static_cast<int64_t>(Order().size()) - place_.sample);
  const Share share{place_.step, place_.epoch, OwnSamples(all)};
  const double part =
      static_cast<double>(share.samples.size()) / static_cast<double>(all);
  Tensor sums = Tensor::Zeros({2}, {.dtype = DType::kF64});
  optimizer_.ZeroGrad();
  std::vector<Variable> outputs;  // empty if other members have all samples
  if (!share.samples.empty()) {
    Variable own = loss(share);
    sums.data<double>()[0] = own.tensor().Item() * part;
    // Reducing weights members equally, but samples must count equally.
    const double weight = part * group_->size();
    outputs.push_back(weight == 1.0 ? own : autograd::MulScalar(own, weight));
  }
  sums.data<double>()[1] = static_cast<double>(DraftInvitation());
  RETURN_IF_ERROR(parallel_->Backward(outputs, {}));
  RETURN_IF_ERROR(group_->AllReduce(sums).Await(kNoLimit));
  // From here on the step counts, because other members may already have
  // committed it.
  optimizer_.Step();
  const Done done{place_.step, place_.epoch, group_->size(),
                  sums.data<double>()[0]};
  invited_ = static_cast<int64_t>(sums.data<double>()[1]);
  Advance(all);
  return done;
}

// Shares differ by at most one sample, and the first ranks have the larger
// ones: rank 0, whose buffers count, always has some.
std::vector<int64_t> ElasticTraining::OwnSamples(int64_t all) const {
  const int64_t size = group_->size(), rank = group_->rank();
  const auto begin = [&](int64_t of) {
    return order_.begin() + place_.sample + (all * of + size - 1) / size;
  };
  return {begin(rank), begin(rank + 1)};
}

const std::vector<int64_t>& ElasticTraining::Order() {
  if (ordered_epoch_ != place_.epoch) {
    order_ = options_.samples->Order(place_.epoch);
    ordered_epoch_ = place_.epoch;
  }
  return order_;
}

void ElasticTraining::Advance(int64_t samples) {
  ++place_.step;
  place_.sample += samples;
  if (place_.sample < static_cast<int64_t>(order_.size())) return;
  place_.sample = 0;
  ++place_.epoch;
}

// Returns what a forward changes.
nn::StateMap ElasticTraining::Undoable() const {
  nn::StateMap state;
  for (const auto& [name, buffer] : module_.NamedBuffers())
    state.emplace(absl::StrCat(kBuffer, name), buffer.Clone());
  for (const auto& [name, generator] : module_.GeneratorState())
    state.emplace(absl::StrCat(kGenerator, name), generator.Clone());
  return state;
}

absl::Status ElasticTraining::Undo(const nn::StateMap& state) {
  nn::StateMap generators;
  for (const auto& [name, unused] : module_.GeneratorState())
    generators.emplace(name, state.at(absl::StrCat(kGenerator, name)));
  for (const auto& [name, buffer] : module_.NamedBuffers())
    buffer.CopyFrom(state.at(absl::StrCat(kBuffer, name)));
  return module_.LoadGeneratorState(generators);
}

}  // namespace baton::dist
