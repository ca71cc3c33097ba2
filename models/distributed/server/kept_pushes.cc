// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/kept_pushes.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/server/shard.h"

namespace baton::dist {

bool KeptPushes::IsOpen(const absl::Status& answer) {
  return absl::IsUnavailable(answer) || absl::IsDeadlineExceeded(answer) ||
         absl::IsCancelled(answer);
}

void KeptPushes::Keep(int32_t shard, ExchangeRequest push) {
  const MutexLock lock(mutex_);
  shards_[static_cast<size_t>(shard)].pushes.push_back(
      std::make_shared<const ExchangeRequest>(std::move(push)));
}

bool KeptPushes::empty() const {
  const MutexLock lock(mutex_);
  return absl::c_all_of(
      shards_, [](const Shard& shard) { return shard.pushes.empty(); });
}

Future<void> KeptPushes::Send(int32_t shard,
                              ShardCalls::Clock::time_point deadline) {
  const Promise<void> sent;
  {
    const MutexLock lock(mutex_);
    Shard& of = shards_[static_cast<size_t>(shard)];
    if (of.sending.valid() && !of.sending.ready()) return of.sending;
    of.sending = sent.future();
  }
  SendNext(shard, deadline, sent);
  return sent.future();
}

Future<void> KeptPushes::SendAll(ShardCalls::Clock::time_point deadline) {
  std::vector<Future<void>> sent;
  for (int32_t shard = 0; shard < count_; ++shard)
    sent.push_back(Send(shard, deadline));
  return WaitAll(sent);
}

void KeptPushes::SendNext(int32_t shard, ShardCalls::Clock::time_point deadline,
                          const Promise<void>& sent) {
  std::shared_ptr<const ExchangeRequest> push;
  {
    const MutexLock lock(mutex_);
    const auto& pushes = shards_[static_cast<size_t>(shard)].pushes;
    if (!pushes.empty()) push = pushes.front();
  }
  if (push == nullptr) {
    sent.Set(absl::OkStatus());
    return;
  }
  calls_
      ->At<ExchangeReply>(
          shard,
          [push](const RRef<ServerShard>& primary,
                 const rpc::CallOptions& options) {
            return primary.Async<&ServerShard::Exchange>(options, *push);
          },
          deadline)
      .OnReady([self = shared_from_this(), shard, deadline,
                sent](const absl::StatusOr<ExchangeReply>& reply) {
        if (IsOpen(reply.status())) {
          sent.Set(Annotate(
              reply.status(),
              absl::StrCat("shard ", shard,
                           " may lack an earlier push that others have")));
          return;
        }
        {
          const MutexLock lock(self->mutex_);
          self->shards_[static_cast<size_t>(shard)].pushes.pop_front();
        }
        if (!reply.ok()) {
          sent.Set(reply.status());
        } else {
          self->SendNext(shard, deadline, sent);
        }
      });
}

}  // namespace baton::dist
