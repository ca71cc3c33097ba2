// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/data_parallel/elastic.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/functions/arithmetic.h"
#include "core/status.h"

namespace baton::dist {
namespace {

// A member that waits for servers looks after its group at this interval.
constexpr std::chrono::milliseconds kLook{50};

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
  return TakeStep([&](Context*, const Share& share) { return loss(share); },
                  /*in_context=*/false);
}

absl::StatusOr<ElasticTraining::Done> ElasticTraining::Step(
    const ContextLoss& loss) {
  return TakeStep(
      [&](Context* ctx, const Share& share) { return loss(*ctx, share); },
      /*in_context=*/true);
}

absl::StatusOr<ElasticTraining::Done> ElasticTraining::TakeStep(
    const AnyLoss& loss, bool in_context) {
  for (;;) {
    RETURN_IF_ERROR(CatchErrors([&] { return Settle(); }));
    const int64_t step = place_.step;
    const absl::Status tried = CatchErrors([&] {
      std::optional<Context> ctx;
      if (in_context) ctx.emplace(agent_);
      return TakeOrUndo(loss, in_context ? &*ctx : nullptr);
    });
    if (!tried.ok()) {
      // The others wait for gradients that this member will not send. The abort
      // ends their wait and says that this member is still there.
      group_->Abort(absl::AbortedError(
          absl::StrCat("elastic training: ", tried.message())));
      return tried;
    }
    if (place_.step > step) return last_;
  }
}

absl::Status ElasticTraining::TakeOrUndo(const AnyLoss& loss, Context* ctx) {
  const nn::StateMap before = Undoable();
  Future<void> others;
  const absl::Status tried =
      CatchErrors([&] { return TryStep(loss, ctx, others); });
  if (!tried.ok()) {
    RETURN_IF_ERROR(Undo(before));
    if (!IsLoss(tried) || group_->status().ok()) return tried;
    const int64_t step = place_.step;
    RETURN_IF_ERROR(Mend());
    if (place_.step == step) return absl::OkStatus();
    // It counts for another member, which had the loss of this one: so backward
    // has ended here, and the context has all gradients.
    if (ctx != nullptr) others = ctx->StepOthers();
  }
  return others.valid() ? AwaitOthers(others) : absl::OkStatus();
}

absl::Status ElasticTraining::TryStep(const AnyLoss& loss, Context* ctx,
                                      Future<void>& others) {
  const int64_t all = std::min<int64_t>(
      options_.batch, static_cast<int64_t>(Order().size()) - place_.sample);
  const Share share{place_.step, place_.epoch, OwnSamples(all)};
  const double part =
      static_cast<double>(share.samples.size()) / static_cast<double>(all);
  const double waited = parallel_->figures().waited_s;
  Tensor sums = Tensor::Zeros({2}, {.dtype = DType::kF64});
  optimizer_.ZeroGrad();
  Variable output;  // undefined if other members have all samples
  if (!share.samples.empty()) {
    ASSIGN_OR_RETURN(const Variable own, loss(ctx, share));
    sums.data<double>()[0] = own.tensor().Item() * part;
    // Reducing weights members equally, but samples must count equally.
    const double weight = part * group_->size();
    output = weight == 1.0 ? own : autograd::MulScalar(own, weight);
  }
  sums.data<double>()[1] = static_cast<double>(DraftInvitation());
  RETURN_IF_ERROR(BackwardFrom(output, ctx));
  RETURN_IF_ERROR(group_->AllReduce(sums).Await(kNoLimit));
  // From here on the step counts, because other members may already have
  // committed it.
  if (ctx != nullptr) others = ctx->StepOthers();
  optimizer_.Step();
  last_ = {.step = place_.step,
           .epoch = place_.epoch,
           .members = group_->size(),
           .loss = sums.data<double>()[0],
           .waited_s = parallel_->figures().waited_s - waited};
  invited_ = static_cast<int64_t>(sums.data<double>()[1]);
  Advance(all);
  return absl::OkStatus();
}

absl::Status ElasticTraining::BackwardFrom(const Variable& output,
                                           Context* ctx) {
  if (!output.defined()) return parallel_->Backward({}, {});
  return ctx == nullptr ? parallel_->Backward(output)
                        : parallel_->Backward(*ctx, output);
}

// Servers that wait for all members also wait for those that have lost this
// step's outcome with a member, and these wait here for the others.
absl::Status ElasticTraining::AwaitOthers(const Future<void>& others) {
  while (!others.ready()) {
    (void)others.Await(kLook);
    if (!others.ready() && !group_->status().ok()) RETURN_IF_ERROR(Mend());
  }
  return others.Await();
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
