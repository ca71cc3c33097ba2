// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/kept_pushes.h"
#include "models/distributed/server/row_routes.h"
#include "models/distributed/server/shard_calls.h"

namespace baton::dist {

// The part of the client that outlives it while a trade is in progress.
class ServerClient::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(rpc::Agent& agent, const DirectoryLine& directories, ServedKeys served,
       const ClientOptions& options)
      : agent_(agent),
        options_(std::move(served.options)),
        layout_(std::make_shared<KeyLayout>(std::move(served.layout))),
        calls_(ShardCalls::Make(
            agent, directories, layout_->shards(),
            options.timeout.value_or(agent.default_timeout()))),
        compresses_(options.compression.kind != Compression::Kind::kNone),
        compressors_(layout_->shard_elements.size(),
                     Compressor(options.compression)),
        kept_(std::make_shared<KeptPushes>(calls_, layout_->shards())),
        pushes_(layout_->shard_elements.size()) {}

  const ServerOptions& options() const { return options_; }
  const std::shared_ptr<const KeyLayout>& layout() const { return layout_; }
  ShardCalls& calls() const { return *calls_; }
  void set_id(TrainerId id) { id_ = id; }

  Future<Pulled> Do(Trade trade);
  // Joins every shard, so that each push counts in the same round everywhere.
  absl::Status JoinShards(int64_t rank);
  // Leaves at every shard, unless this trainer has already left.
  std::vector<Future<void>> Leave();

 private:
  // A trade's part for one shard.
  struct Share {
    int32_t shard = 0;
    int64_t sequence = 0;
    std::shared_ptr<const RowRoutes> routes;
    std::shared_ptr<JoinedRows> joined;
    // Includes the time that the share waits for earlier pushes.
    ShardCalls::Clock::time_point deadline;
    Gradients compressed{};  // computed only once, even if it is sent again
  };
  using TradePtr = std::shared_ptr<const Trade>;

  absl::Status Check(const Trade& trade) const;
  Future<Pulled> DoNow(const TradePtr& trade,
                       ShardCalls::Clock::time_point deadline);
  // Whether the trade is to pull one version, which one shard always has.
  bool PullsOneVersion(const Trade& trade) const;
  // Pulls again, at one cut, what a trade has pulled.
  Future<Pulled> PullAgain(const TradePtr& trade,
                           const std::shared_ptr<const RowRoutes>& routes,
                           const std::vector<ExchangeReply>& seen,
                           ShardCalls::Clock::time_point deadline);
  // Pushes to one shard are sent one after the other. The rows of the reply are
  // taken into the share's joined ones. SendPush sends those that the shard may
  // lack before this one, which is kept if the shard may lack it afterwards.
  Future<ExchangeReply> Send(const TradePtr& trade,
                             const std::shared_ptr<Share>& share);
  Future<ExchangeReply> SendPush(const TradePtr& trade,
                                 const std::shared_ptr<Share>& share);
  // Returns the reply to the share, which is sent after the previous push to
  // its shard; if that is over, by `now`, to be called without the mutex.
  Future<ExchangeReply> Queue(const TradePtr& trade,
                              const std::shared_ptr<Share>& share,
                              std::vector<std::function<void()>>& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compress(const Trade& trade, Share& share);
  // Returns the push of a request, in memory that `empty` makes.
  ExchangeRequest PushOf(const Trade& trade, const Share& share,
                         const ShardState::Empty& empty) const;
  ExchangeRequest RequestOf(const Trade& trade, const Share& share,
                            const rpc::WorkerInfo& server) const;

  rpc::Agent& agent_;
  const ServerOptions options_;
  const std::shared_ptr<const KeyLayout> layout_;
  const std::shared_ptr<ShardCalls> calls_;
  const bool compresses_;
  std::vector<Compressor> compressors_;  // by shard; used by the push that is
                                         // being sent
  const std::shared_ptr<KeptPushes> kept_;
  std::atomic<TrainerId> id_ = kReader;
  Mutex mutex_;
  // The last push to each shard; the next one is sent after it.
  std::vector<Future<ExchangeReply>> pushes_ ABSL_GUARDED_BY(mutex_);
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton::dist
