// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/embedding.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "autograd/distributed/context_state.h"
#include "autograd/functions/indexing.h"
#include "core/mutex.h"
#include "core/status.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {
namespace {

// Each key once, and the place of every given key among them.
struct DistinctKeys {
  Tensor keys, places;
};

DistinctKeys DistinctOf(const Tensor& given) {
  const Tensor all = PlacedOn(Device::Cpu(), given);
  DistinctKeys distinct{.keys = {}, .places = Tensor::EmptyLike(all)};
  absl::flat_hash_map<int64_t, int64_t> place_of;
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < all.numel(); ++i) {
    const int64_t key = all.data<int64_t>()[i];
    const auto [found, is_new] =
        place_of.try_emplace(key, static_cast<int64_t>(keys.size()));
    if (is_new) keys.push_back(key);
    distinct.places.data<int64_t>()[i] = found->second;
  }
  distinct.keys = Tensor::From(keys);
  return distinct;
}

}  // namespace

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
  Future<void> Step(const StatePtr& state);
  std::vector<RowGradients> TakeGradients(const StatePtr& state);

 private:
  struct Lookup {
    Tensor keys;
    Variable rows;
  };
  void Remember(const StatePtr& state, const Lookup& lookup);
  // Returns nullopt if nothing was looked up since the last call.
  std::optional<std::vector<RowGradients>> Take(const StatePtr& state);
  Future<void> Push(std::vector<RowGradients> gradients);

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
  const DistinctKeys distinct = DistinctOf(keys);
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
  state->OnStep([self = shared_from_this(),
                 weak = std::weak_ptr<ContextState>(state)]() -> Future<void> {
    const StatePtr context = weak.lock();
    if (context == nullptr) return ReadyFuture<void>(absl::OkStatus());
    auto taken = self->Take(context);
    return taken.has_value() ? self->Push(*std::move(taken))
                             : ReadyFuture<void>(absl::OkStatus());
  });
}

std::vector<RowGradients> Embedding::Core::TakeGradients(
    const StatePtr& state) {
  return Take(state).value_or(std::vector<RowGradients>());
}

std::optional<std::vector<RowGradients>> Embedding::Core::Take(
    const StatePtr& state) {
  std::vector<Lookup> lookups;
  {
    const MutexLock lock(mutex_);
    const auto found = lookups_.find(state);
    if (found == lookups_.end()) return std::nullopt;
    lookups.swap(found->second);
    lookups_.erase(found);
  }
  std::vector<RowGradients> gradients;
  for (const Lookup& lookup : lookups) {
    const Gradient gradient = state->GradientOf(lookup.rows);
    if (!gradient.defined()) continue;
    gradients.push_back(
        {.table = table_, .keys = lookup.keys, .gradients = gradient.Dense()});
  }
  return gradients;
}

Future<void> Embedding::Core::Step(const StatePtr& state) {
  return Push(TakeGradients(state));
}

Future<void> Embedding::Core::Push(std::vector<RowGradients> gradients) {
  if (gradients.empty() &&
      client_->options().mode == Consistency::kAsynchronous)
    return ReadyFuture<void>(absl::OkStatus());
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

Future<void> Embedding::Step(const Context& ctx) {
  return core_->Step(std::dynamic_pointer_cast<ContextState>(ctx.call_scope()));
}

std::vector<RowGradients> Embedding::TakeGradients(const Context& ctx) {
  return core_->TakeGradients(
      std::dynamic_pointer_cast<ContextState>(ctx.call_scope()));
}

}  // namespace baton::dist
