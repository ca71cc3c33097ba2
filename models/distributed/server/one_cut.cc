// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/one_cut.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {
namespace {

using Replies = std::vector<ExchangeReply>;

// Lets pushes through before they are held again.
constexpr std::chrono::milliseconds kPause{50};

Cut AllOf(const Replies& replies) {
  Cut all;
  for (const ExchangeReply& reply : replies) Include(reply.cut, all);
  return all;
}

// Unique in this process.
uint64_t NextHold() {
  static std::atomic<uint64_t> holds{0};
  return ++holds;
}

// Holds the pushes at all shards, so that none gets further than another one
// may follow, and has each pull when it has all pushes that one of them has.
// These are on their way to the others.
class CutPull : public std::enable_shared_from_this<CutPull> {
 public:
  CutPull(rpc::Agent& agent, std::shared_ptr<ShardCalls> calls,
          std::vector<ExchangeRequest> requests, Replies seen,
          ShardCalls::Clock::time_point deadline)
      : agent_(agent),
        calls_(std::move(calls)),
        requests_(std::move(requests)),
        deadline_(deadline),
        seen_(std::move(seen)) {}

  Future<Replies> Run() {
    Hold();
    return promise_.future();
  }

 private:
  using Result = absl::StatusOr<Replies>;

  void Hold() {
    const uint64_t number = NextHold();
    AtAll(
        [number](int32_t /*shard*/, const RRef<ServerShard>& primary,
                 const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Hold>(options, number);
        },
        [number](CutPull& self, const Result& held) {
          held.ok() ? self.Pull(number, *held) : self.End(held.status());
        });
  }

  void Pull(uint64_t number, const Replies& held) {
    seen_ = held;
    for (ExchangeRequest& request : requests_) {
      request.hold = number;
      request.upto = AllOf(held);
    }
    AtAll(
        [self = shared_from_this()](int32_t shard,
                                    const RRef<ServerShard>& primary,
                                    const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Exchange>(
              options, self->requests_[static_cast<size_t>(shard)]);
        },
        [](CutPull& self, const Result& pulled) { self.OnPulled(pulled); });
  }

  // A shard may have let go of the hold too early, or have another server.
  void OnPulled(const Result& pulled) {
    if (!pulled.ok()) {
      End(pulled.status());
      return;
    }
    seen_ = *pulled;
    if (AreAtOneCut(seen_)) {
      promise_.Set(seen_);
    } else if (ShardCalls::Clock::now() + kPause > deadline_) {
      End(absl::DeadlineExceededError(""));
    } else {
      agent_.timer().After(kPause, [self = shared_from_this()] {
        self->agent_.executor().Post([self] { self->Hold(); });
      });
    }
  }

  void End(const absl::Status& why) {
    if (!absl::IsDeadlineExceeded(why)) {
      promise_.Set(why);
      return;
    }
    std::string message =
        "the shards have not come to one version in time, so some trainer's "
        "push has not reached all of them:";
    for (size_t shard = 0; shard < seen_.size(); ++shard) {
      absl::StrAppend(&message, shard > 0 ? "," : "", " shard ", shard,
                      " has version ", seen_[shard].version);
    }
    promise_.Set(absl::AbortedError(message));
  }

  template <typename Call, typename Then>
  void AtAll(const Call& call, const Then& then) {
    std::vector<Future<ExchangeReply>> replies;
    for (int32_t shard = 0; shard < static_cast<int32_t>(requests_.size());
         ++shard) {
      replies.push_back(calls_->At<ExchangeReply>(
          shard,
          [call, shard](const RRef<ServerShard>& primary,
                        const rpc::CallOptions& options) {
            return call(shard, primary, options);
          },
          deadline_));
    }
    WaitAll(replies).OnReady([self = shared_from_this(),
                              then](const Result& all) { then(*self, all); });
  }

  rpc::Agent& agent_;
  const std::shared_ptr<ShardCalls> calls_;
  std::vector<ExchangeRequest> requests_;
  const ShardCalls::Clock::time_point deadline_;
  Replies seen_;
  const Promise<Replies> promise_;
};

}  // namespace

bool AreAtOneCut(const std::vector<ExchangeReply>& replies) {
  const Cut all = AllOf(replies);
  return std::all_of(
      replies.begin(), replies.end(),
      [&](const ExchangeReply& reply) { return Reaches(reply.cut, all); });
}

Future<std::vector<ExchangeReply>> PullAtOneCut(
    rpc::Agent& agent, std::shared_ptr<ShardCalls> calls,
    std::vector<ExchangeRequest> requests, std::vector<ExchangeReply> seen,
    ShardCalls::Clock::time_point deadline) {
  return std::make_shared<CutPull>(agent, std::move(calls), std::move(requests),
                                   std::move(seen), deadline)
      ->Run();
}

}  // namespace baton::dist
