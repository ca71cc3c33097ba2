// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/future.h"
#include "core/mutex.h"
#include "models/distributed/server/directory.h"
#include "rpc/agent.h"
#include "rpc/call_options.h"

namespace baton::dist {

// The calls of one client to shards, whichever worker serves them. A call that
// no server has answered is repeated at the server that the directory names
// next, so a called method must count once however often it is called. When the
// cluster loses a server, its successor is looked up at once, before the next
// call. Must not outlive the agent. Thread-safe.
class ShardCalls : public std::enable_shared_from_this<ShardCalls> {
 public:
  using Clock = std::chrono::steady_clock;

  // Each call, with its repetitions, ends within `timeout`, unless it is given
  // a deadline.
  static std::shared_ptr<ShardCalls> Make(rpc::Agent& agent,
                                          const DirectoryLine& directories,
                                          int shards,
                                          std::chrono::milliseconds timeout);

  template <typename T>
  using Call = std::function<Future<T>(const RRef<ServerShard>& primary,
                                       const rpc::CallOptions& time_left)>;
  template <typename T>
  Future<T> At(int32_t shard, Call<T> call) {
    return At(shard, std::move(call), Deadline());
  }
  template <typename T>
  Future<T> At(int32_t shard, Call<T> call, Clock::time_point deadline) {
    const auto attempt = std::make_shared<Attempt<T>>(Attempt<T>{
        .shard = shard, .call = std::move(call), .deadline = deadline});
    Try(attempt);
    return attempt->promise.future();
  }

  // Of a call that is made now.
  Clock::time_point Deadline() const { return Clock::now() + timeout_; }
  // The first directory that is still reachable.
  RRef<ServerDirectory> directory() const;
  // The epoch in which the shard was last found; 0 before that.
  int64_t EpochOf(int32_t shard) const;

 private:
  template <typename T>
  struct Attempt {
    int32_t shard = 0;
    Call<T> call;
    Clock::time_point deadline;
    Promise<T> promise{};

    std::chrono::milliseconds left() const {
      return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - Clock::now()),
                      std::chrono::milliseconds(0));
    }
  };
  template <typename T>
  using AttemptPtr = std::shared_ptr<Attempt<T>>;

  using Then = std::function<void(const absl::Status&)>;
  struct Entry {
    ShardPlace place;    // where the shard was last found
    bool found = false;  // and, as far as is known, it is still there
    bool asking = false;
    std::vector<Then> waiting;  // for the place
    // Calls to the server there, and how to repeat them at the next one.
    std::map<uint64_t, std::function<void()>> under_way;
  };

  ShardCalls(rpc::Agent& agent, const DirectoryLine& directories, int shards,
             std::chrono::milliseconds timeout)
      : agent_(agent),
        timeout_(timeout),
        directories_(directories),
        shards_(static_cast<size_t>(shards)) {}

  template <typename T>
  void Try(const AttemptPtr<T>& attempt) {
    const auto made = Begin(attempt->shard, [self = shared_from_this(),
                                             attempt] { self->Try(attempt); });
    if (!made.has_value()) {
      Find(attempt->shard, attempt->left(),
           [self = shared_from_this(), attempt](const absl::Status& found) {
             self->TryFound(attempt, found);
           });
      return;
    }
    attempt->call(*made->place.primary, {.timeout = attempt->left()})
        .OnReady([self = shared_from_this(), attempt, number = made->number,
                  epoch = made->place.epoch](const ResultOf<T>& result) {
          if (self->End(attempt->shard, number))
            self->OnResult(attempt, epoch, result);
        });
  }
  template <typename T>
  void OnResult(const AttemptPtr<T>& attempt, int64_t epoch,
                const ResultOf<T>& result) {
    const absl::Status status = baton::internal::StatusOf(result);
    if (!MayTryAgain(status)) {
      attempt->promise.Set(result);
      return;
    }
    Doubt(attempt->shard, epoch);
    const absl::Status end = EndOf(attempt->shard, attempt->deadline, status);
    if (end.ok()) {
      Try(attempt);
    } else {
      attempt->promise.Set(end);
    }
  }
  template <typename T>
  void TryFound(const AttemptPtr<T>& attempt, const absl::Status& found) {
    if (found.ok()) {
      Try(attempt);
      return;
    }
    const absl::Status end = EndOf(attempt->shard, attempt->deadline, found);
    if (!end.ok()) {
      attempt->promise.Set(end);
    } else {
      Later([self = shared_from_this(), attempt] { self->Try(attempt); });
    }
  }
  // Returns OK while there is time to retry after the error `why`.
  static absl::Status EndOf(int32_t shard, Clock::time_point deadline,
                            const absl::Status& why);
  static bool MayTryAgain(const absl::Status& status);

  // A call to the shard at the place where it was found.
  struct Made {
    ShardPlace place;
    uint64_t number = 0;
  };
  std::optional<Made> Begin(int32_t shard, std::function<void()> again);
  // Returns false if the call has been repeated at another server.
  bool End(int32_t shard, uint64_t number);
  void Doubt(int32_t shard, int64_t epoch);
  void Find(int32_t shard, std::chrono::milliseconds left, Then then);
  void OnPlace(int32_t shard, const absl::StatusOr<ShardPlace>& place);
  void AskIfBack(int32_t shard);
  void OnFound(int32_t shard, const absl::Status& found);
  // Looks the shard up although no call waits for it.
  void Seek(int32_t shard, Clock::time_point deadline);
  void OnMember(const rpc::MemberEvent& event);
  void Later(std::function<void()> then);

  rpc::Agent& agent_;
  const std::chrono::milliseconds timeout_;
  mutable Mutex mutex_;
  DirectoryLine directories_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;  // number so far
};

}  // namespace baton::dist
