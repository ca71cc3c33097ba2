// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/client_core.h"

#include <algorithm>
#include <cstddef>

#include "autograd/distributed/step_count.h"
#include "core/status.h"
#include "models/distributed/server/one_cut.h"

namespace baton::dist {

absl::Status ServerClient::Core::Check(const Trade& trade) const {
  if (!trade.gradients.empty())
    RETURN_IF_ERROR(layout_->Check(trade.gradients));
  if (trade.push && id_ == kReader) {
    return absl::FailedPreconditionError(
        "one who has not joined as a trainer only pulls");
  }
  for (const RowGradients& rows : trade.row_gradients)
    RETURN_IF_ERROR(CheckRowGradients(options_, rows));
  for (const RowKeys& rows : trade.rows)
    RETURN_IF_ERROR(CheckRowKeys(options_, rows.table, rows.keys));
  return absl::OkStatus();
}

bool ServerClient::Core::PullsOneVersion(const Trade& trade) const {
  return layout_->shards() > 1 && (trade.values || !trade.rows.empty()) &&
         trade.one_version.value_or(
             options_.mode == Consistency::kBulkSynchronous && id_ == kReader);
}

ExchangeRequest ServerClient::Core::PushOf(
    const Trade& trade, const Share& share,
    const ShardState::Empty& empty) const {
  ExchangeRequest request{
      .trainer = id_,
      .sequence = share.sequence,
      .gradients = {.dense = {},
                    .rows = share.routes->Gradients(share.shard, empty)}};
  if (trade.gradients.empty()) return request;
  if (compresses_) {
    request.gradients.dense = share.compressed.dense;
    request.gradients.index = share.compressed.index;
    return request;
  }
  request.gradients.dense =
      empty({layout_->shard_elements[static_cast<size_t>(share.shard)]}, {});
  layout_->Pack(share.shard, trade.gradients, request.gradients.dense);
  return request;
}

ExchangeRequest ServerClient::Core::RequestOf(
    const Trade& trade, const Share& share,
    const rpc::WorkerInfo& server) const {
  // Allocate where the server can see it, so that it is sent without a copy.
  ExchangeRequest request = PushOf(
      trade, share, [&](const Shape& shape, const TensorOptions& options) {
        const auto place = agent_.EmptyFor(server, shape, options);
        return place.ok() ? *place : Tensor::Empty(shape, options);
      });
  request.values = trade.values;
  request.rows = share.routes->keys(share.shard);
  request.cut = PullsOneVersion(trade);
  return request;
}

void ServerClient::Core::Compress(const Trade& trade, Share& share) {
  const auto at = static_cast<size_t>(share.shard);
  const Tensor flat = Tensor::Empty({layout_->shard_elements[at]});
  layout_->Pack(share.shard, trade.gradients, flat);
  share.compressed = compressors_[at].Compress(flat);
}

Future<ExchangeReply> ServerClient::Core::Send(
    const TradePtr& trade, const std::shared_ptr<Share>& share) {
  return calls_
      ->At<ExchangeReply>(
          share->shard,
          [self = shared_from_this(), trade, share](
              const RRef<ServerShard>& primary,
              const rpc::CallOptions& options) {
            return primary.Async<&ServerShard::Exchange>(
                options, self->RequestOf(*trade, *share, primary.owner()));
          },
          share->deadline)
      .Then([share](const ExchangeReply& reply) {
        share->joined->Take(share->shard, reply.rows);
        return reply;
      });
}

Future<ExchangeReply> ServerClient::Core::SendPush(
    const TradePtr& trade, const std::shared_ptr<Share>& share) {
  if (compresses_ && !trade->gradients.empty()) Compress(*trade, *share);
  const Promise<ExchangeReply> pushed;
  kept_->Send(share->shard, share->deadline)
      .Then([self = shared_from_this(), trade, share] {
        return self->Send(trade, share);
      })
      .OnReady([self = shared_from_this(), trade, share,
                pushed](const absl::StatusOr<ExchangeReply>& reply) {
        if (KeptPushes::IsOpen(reply.status())) {
          self->kept_->Keep(share->shard,
                            self->PushOf(*trade, *share,
                                         [](const Shape& shape,
                                            const TensorOptions& options) {
                                           return Tensor::Empty(shape, options);
                                         }));
        }
        pushed.Set(reply);
      });
  return pushed.future();
}

Future<ExchangeReply> ServerClient::Core::Queue(
    const TradePtr& trade, const std::shared_ptr<Share>& share,
    std::vector<std::function<void()>>& now) {
  Promise<ExchangeReply> promise;
  const auto send = [self = shared_from_this(), trade, share, promise] {
    (trade->push ? self->SendPush(trade, share) : self->Send(trade, share))
        .OnReady([promise](const absl::StatusOr<ExchangeReply>& reply) {
          promise.Set(reply);
        });
  };
  Future<ExchangeReply>& last = pushes_[static_cast<size_t>(share->shard)];
  const Future<ExchangeReply> before = last;
  if (trade->push) last = promise.future();
  if (trade->push && before.valid() && !before.ready()) {
    before.OnReady([send](const absl::StatusOr<ExchangeReply>&) { send(); });
  } else {
    now.emplace_back(send);
  }
  return promise.future();
}

Future<Pulled> ServerClient::Core::PullAgain(
    const TradePtr& trade, const std::shared_ptr<const RowRoutes>& routes,
    const std::vector<ExchangeReply>& seen,
    ShardCalls::Clock::time_point deadline) {
  std::vector<ExchangeRequest> requests;
  for (int shard = 0; shard < layout_->shards(); ++shard) {
    requests.push_back({.trainer = id_,
                        .values = trade->values,
                        .rows = routes->keys(shard),
                        .cut = true});
  }
  return PullAtOneCut(agent_, calls_, std::move(requests), seen, deadline)
      .Then([routes,
             layout = layout_](const std::vector<ExchangeReply>& replies) {
        JoinedRows joined(routes);
        for (size_t shard = 0; shard < replies.size(); ++shard)
          joined.Take(static_cast<int>(shard), replies[shard].rows);
        return Pulled{
            .shards = replies, .rows = joined.All(), .layout = layout};
      });
}

Future<Pulled> ServerClient::Core::Do(Trade given) {
  if (absl::Status status = Check(given); !status.ok())
    return ReadyFuture<Pulled>(status);
  const auto trade = std::make_shared<const Trade>(std::move(given));
  const auto deadline = calls_->Deadline();
  if (!trade->push || kept_->empty()) return DoNow(trade, deadline);
  // This push goes to no shard before all have the earlier ones.
  return kept_->SendAll(deadline).Then(
      [self = shared_from_this(), trade, deadline] {
        return self->DoNow(trade, deadline);
      });
}

Future<Pulled> ServerClient::Core::DoNow(
    const TradePtr& trade, ShardCalls::Clock::time_point deadline) {
  const int shards = layout_->shards();
  const auto routes = std::make_shared<const RowRoutes>(
      options_, shards, trade->row_gradients, trade->rows);
  const auto joined = std::make_shared<JoinedRows>(routes);
  std::vector<Future<ExchangeReply>> replies;
  std::vector<std::function<void()>> now;
  {
    const MutexLock lock(mutex_);
    const int64_t sequence = trade->push ? ++sequence_ : 0;
    for (int32_t shard = 0; shard < shards; ++shard) {
      const auto share = std::make_shared<Share>(Share{.shard = shard,
                                                       .sequence = sequence,
                                                       .routes = routes,
                                                       .joined = joined,
                                                       .deadline = deadline});
      replies.push_back(Queue(trade, share, now));
    }
  }
  // Clients begin with different shards, so that no server waits until they are
  // done with another one.
  const size_t first =
      static_cast<size_t>(agent_.self().rank) % std::max<size_t>(now.size(), 1);
  std::rotate(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(first),
              now.end());
  for (const auto& send : now) send();
  if (trade->push) CountStep(agent_);
  return WaitAll(replies).Then(
      [self = shared_from_this(), trade, routes, joined,
       deadline](const std::vector<ExchangeReply>& replies) -> Future<Pulled> {
        if (self->PullsOneVersion(*trade) && !AreAtOneCut(replies))
          return self->PullAgain(trade, routes, replies, deadline);
        return ReadyFuture<Pulled>(Pulled{
            .shards = replies, .rows = joined->All(), .layout = self->layout_});
      });
}

absl::Status ServerClient::Core::JoinShards(int64_t rank) {
  std::vector<Future<int64_t>> joining;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    joining.push_back(calls_->At<int64_t>(
        shard, [id = id_.load(), rank](const RRef<ServerShard>& primary,
                                       const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Join>(options, id, rank);
        }));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> clocks,
                   WaitAll(joining).Await(kNoLimit));
  const int64_t latest = *std::max_element(clocks.begin(), clocks.end());
  std::vector<Future<void>> starting;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    if (clocks[static_cast<size_t>(shard)] == latest) continue;
    starting.push_back(calls_->At<void>(
        shard, [id = id_.load(), latest](const RRef<ServerShard>& primary,
                                         const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Start>(options, id, latest);
        }));
  }
  return WaitAll(starting).Await(kNoLimit);
}

std::vector<Future<void>> ServerClient::Core::Leave() {
  std::vector<Future<void>> leaving;
  const TrainerId id = id_.exchange(kReader);
  if (id == kReader) return leaving;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    leaving.push_back(
        calls_->At<void>(shard, [id](const RRef<ServerShard>& primary,
                                     const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Leave>(options, id);
        }));
  }
  return leaving;
}

}  // namespace baton::dist
