// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/embedding.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/context_state.h"
#include "autograd/functions/indexing.h"
#include "core/mutex.h"
#include "core/ops/arithmetic.h"
#include "core/ops/multi_tensor.h"
#include "core/status.h"
#include "models/distributed/server/distinct_keys.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// The part of the embedding that outlives it while a lookup or a push is in
// progress.
class Embedding::Core : public std::enable_shared_from_this<Core> {
 public:
  using StatePtr = std::shared_ptr<ContextState>;

  Core(std::shared_ptr<ServerClient> client, int32_t table,
       const EmbeddingOptions& options)
      : client_(std::move(client)), table_(table), options_(options) {}

  // If `state` is null, without gradients.
  Future<Variable> Forward(const StatePtr& state, const Tensor& keys);
  Future<void> Step(const StatePtr& state, const OtherStepSettings& settings);
  std::vector<RowGradients> TakeGradients(const StatePtr& state);

 private:
  struct Lookup {
    Tensor keys;
    Variable rows;
  };
  void Remember(const StatePtr& state, const Lookup& lookup);
  // Pushes nothing, as TakeGradients does, if they were taken already.
  Future<void> StepOnce(const StatePtr& state,
                        const OtherStepSettings& settings);
  double SquareNorm(const StatePtr& state);
  // Returns what was looked up in the context since it was taken out.
  std::vector<Lookup> LookupsOf(const StatePtr& state, bool take);
  std::vector<RowGradients> GradientsOf(
      const StatePtr& state, const std::vector<Lookup>& lookups) const;
  Future<void> Push(std::vector<RowGradients> gradients,
                    const OtherStepSettings& settings);

  const std::shared_ptr<ServerClient> client_;
  const int32_t table_;
  const EmbeddingOptions options_;
  Mutex mutex_;
  // By context, for those that have not stepped yet.
  std::map<std::weak_ptr<ContextState>, std::vector<Lookup>, std::owner_less<>>
      lookups_ ABSL_GUARDED_BY(mutex_);
};

Future<Variable> Embedding::Core::Forward(const StatePtr& state,
                                          const Tensor& keys) {
  if (!keys.defined() || keys.dtype() != DType::kI64) {
    return ReadyFuture<Variable>(absl::InvalidArgumentError(absl::StrCat(
        "an embedding looks up keys i64, not ",
        keys.defined() ? keys.ToString() : std::string("nothing"))));
  }
  const DistinctKeys distinct = DistinctOf(PlacedOn(Device::Cpu(), keys));
  const bool learns = state != nullptr && !NoGrad::Active();
  return client_->PullRows(table_, distinct.keys)
      .Then([self = shared_from_this(), state, distinct, learns,
             device = keys.device()](const Tensor& pulled) {
        const Variable rows(pulled.To(device), learns);
        if (learns)
          self->Remember(state, {.keys = distinct.keys, .rows = rows});
        return autograd::Embedding(rows, distinct.places.To(device));
      });
}

void Embedding::Core::Remember(const StatePtr& state, const Lookup& lookup) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    std::erase_if(lookups_,
                  [](const auto& entry) { return entry.first.expired(); });
    std::vector<Lookup>& of_context = lookups_[state];
    is_first = of_context.empty();
    of_context.push_back(lookup);
  }
  if (!is_first) return;
  const auto self = shared_from_this();
  const std::weak_ptr<ContextState> weak = state;
  state->OnStep({.square_norm =
                     [self, weak] {
                       const StatePtr context = weak.lock();
                       return context == nullptr ? 0
                                                 : self->SquareNorm(context);
                     },
                 .step =
                     [self, weak](const OtherStepSettings& settings) {
                       const StatePtr context = weak.lock();
                       return context == nullptr
                                  ? ReadyFuture<void>(absl::OkStatus())
                                  : self->StepOnce(context, settings);
                     }});
}

std::vector<Embedding::Core::Lookup> Embedding::Core::LookupsOf(
    const StatePtr& state, bool take) {
  const MutexLock lock(mutex_);
  const auto found = lookups_.find(state);
  if (found == lookups_.end()) return {};
  if (!take) return found->second;
  return std::move(lookups_.extract(found).mapped());
}

// A row that was looked up several times has the sum of the gradients, which
// limits and norms apply to.
std::vector<RowGradients> Embedding::Core::GradientsOf(
    const StatePtr& state, const std::vector<Lookup>& lookups) const {
  std::vector<RowGradients> gradients;
  for (const Lookup& lookup : lookups) {
    const Gradient gradient = state->GradientOf(lookup.rows);
    if (!gradient.defined()) continue;
    gradients.push_back(
        {.table = table_, .keys = lookup.keys, .gradients = gradient.Dense()});
  }
  if (gradients.size() < 2) return gradients;
  const Device device = gradients[0].gradients.device();
  return {SumOfKeys(JoinedOn(Device::Cpu(), device, gradients))};
}

std::vector<RowGradients> Embedding::Core::TakeGradients(
    const StatePtr& state) {
  return GradientsOf(state, LookupsOf(state, /*take=*/true));
}

double Embedding::Core::SquareNorm(const StatePtr& state) {
  double sum = 0;
  for (const RowGradients& rows :
       GradientsOf(state, LookupsOf(state, /*take=*/false)))
    sum += ops::SquareSum({rows.gradients}).Item();
  return sum;
}

Future<void> Embedding::Core::StepOnce(const StatePtr& state,
                                       const OtherStepSettings& settings) {
  const std::vector<Lookup> lookups = LookupsOf(state, /*take=*/true);
  return lookups.empty() ? ReadyFuture<void>(absl::OkStatus())
                         : Push(GradientsOf(state, lookups), settings);
}

Future<void> Embedding::Core::Step(const StatePtr& state,
                                   const OtherStepSettings& settings) {
  return Push(TakeGradients(state), settings);
}

Future<void> Embedding::Core::Push(std::vector<RowGradients> gradients,
                                   const OtherStepSettings& settings) {
  if (settings.skip) gradients.clear();
  if (gradients.empty() &&
      client_->options().mode == Consistency::kAsynchronous)
    return ReadyFuture<void>(absl::OkStatus());
  for (RowGradients& rows : gradients) {
    rows.rate = settings.rate;
    if (settings.gradient != 1)
      rows.gradients = ops::MulScalar(rows.gradients, settings.gradient);
    if (std::isfinite(settings.limit))
      rows.gradients =
          ops::Clamp(rows.gradients, -settings.limit, settings.limit);
  }
  Trade trade{.row_gradients = std::move(gradients)};
  // Only a pull waits for other trainers.
  if (options_.step_awaits_trainers && !trade.row_gradients.empty()) {
    const Tensor& keys = trade.row_gradients.front().keys;
    trade.rows = {{.table = table_, .keys = keys.Slice(0, 0, 1)}};
  }
  return client_->Do(std::move(trade)).Then([](const Pulled&) {});
}

absl::StatusOr<std::unique_ptr<Embedding>> Embedding::Make(
    std::shared_ptr<ServerClient> client, const std::string& table,
    const EmbeddingOptions& options) {
  const int32_t number = client->TableOf(table);
  if (number < 0) {
    return absl::NotFoundError(
        absl::StrCat("the servers have no table ", table,
                     ": name it in ServerOptions::tables when they are made"));
  }
  return std::unique_ptr<Embedding>(new Embedding(
      std::make_shared<Core>(std::move(client), number, options)));
}

Future<Variable> Embedding::Forward(const Context& ctx, const Tensor& keys) {
  return core_->Forward(
      std::dynamic_pointer_cast<ContextState>(ctx.call_scope()), keys);
}

Future<Variable> Embedding::Forward(const rpc::CallContext& call,
                                    const Tensor& keys) {
  const auto state = ContextOf(call);
  if (!state.ok()) return ReadyFuture<Variable>(state.status());
  return core_->Forward(*state, keys);
}

Future<Variable> Embedding::Forward(const Tensor& keys) {
  return core_->Forward(nullptr, keys);
}

Future<void> Embedding::Step(const Context& ctx,
                             const OtherStepSettings& settings) {
  return core_->Step(std::dynamic_pointer_cast<ContextState>(ctx.call_scope()),
                     settings);
}

std::vector<RowGradients> Embedding::TakeGradients(const Context& ctx) {
  return core_->TakeGradients(
      std::dynamic_pointer_cast<ContextState>(ctx.call_scope()));
}

}  // namespace baton::dist
