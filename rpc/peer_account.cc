// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/peer_account.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/histogram.h"
#include "rpc/shown_name.h"

namespace baton::rpc::internal {
namespace {

constexpr size_t kMostEntries = 4096;

void Merge(const MethodStats& from, MethodStats& into) {
  into.calls += from.calls;
  into.failed += from.failed;
  into.bytes_sent += from.bytes_sent;
  into.bytes_received += from.bytes_received;
  into.total_us += from.total_us;
  const size_t buckets = std::max(into.latency.size(), from.latency.size());
  into.latency.resize(buckets);
  for (size_t i = 0; i < from.latency.size(); ++i)
    into.latency[i] += from.latency[i];
}

}  // namespace

absl::StatusOr<PeerAccount::Ticket> PeerAccount::TakeCall(size_t bytes) {
  const auto full = [&](size_t waits, const char* what, size_t limit,
                        const char* flag) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waits, what, " of worker ", peer_, " wait already, of ",
                     limit, " that may (--", flag, "); try again later"));
  };
  const size_t calls = calls_;
  if (calls >= limits_.calls)
    return full(calls, " calls", limits_.calls, "max_calls_per_peer");
  const size_t waits = bytes_ + answers_;
  if (calls > 0 && (waits > limits_.bytes || bytes > limits_.bytes - waits)) {
    return full(waits, " bytes of calls", limits_.bytes,
                "max_call_bytes_per_peer");
  }
  ++calls_;
  bytes_ += bytes;
  return Ticket(new Place(shared_from_this(), true, bytes));
}

PeerAccount::Ticket PeerAccount::TakeReply(bool& first) {
  const size_t replies = replies_;
  if (replies == 0) too_many_ = false;
  if (replies >= limits_.replies) {
    first = !std::exchange(too_many_, true);
    return nullptr;
  }
  ++replies_;
  return Ticket(new Place(shared_from_this(), false, 0));
}

PeerAccount::Place::~Place() {
  of_->bytes_ -= bytes_;
  of_->answers_ -= answer_;
  --(call_ ? of_->calls_ : of_->replies_);
}

absl::Status PeerAccount::Place::MayRun() const {
  const size_t answers = of_->answers_, limit = of_->limits_.bytes;
  if (answers <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(answers, " bytes of answers wait for worker ", of_->peer_,
                   " to read them, of ", limit,
                   " that may (--max_call_bytes_per_peer); try again later"));
}

void PeerAccount::Place::Answer(size_t bytes) {
  of_->answers_ += bytes;  // first: meanwhile it counts for too much
  of_->bytes_ -= std::exchange(bytes_, 0);
  answer_ += bytes;
}

MethodStats& CallStats::Of(PeerAccount& account, bool incoming,
                           const MethodKey& method,
                           const std::string& method_name) {
  const auto found = account.methods_.find({incoming, method});
  if (found != account.methods_.end()) return found->second;
  const bool full = entries_ >= kMostEntries;
  PeerAccount& of = full ? others_ : account;
  const auto [entry, added] =
      of.methods_.try_emplace({incoming, full ? MethodKey() : method});
  MethodStats& stats = entry->second;
  if (added) {
    ++entries_;
    stats.peer = of.peer_;
    stats.method = full ? others_.peer_ : ShownName(method_name);
    stats.incoming = incoming;
  }
  return stats;
}

void CallStats::Add(PeerAccount& account, const EndedCall& ended) {
  MethodStats& stats = Of(account.forgotten_ ? others_ : account,
                          ended.incoming, ended.method, ended.method_name);
  ++stats.calls;
  if (!ended.ok) ++stats.failed;
  stats.bytes_sent += ended.bytes_sent;
  stats.bytes_received += ended.bytes_received;
  stats.total_us += ended.micros;
  CountIn(stats.latency, ended.micros);
}

void CallStats::Forget(PeerAccount& account) {
  account.forgotten_ = true;
  const auto forgotten = std::exchange(account.methods_, {});
  entries_ -= forgotten.size();
  for (const auto& [key, stats] : forgotten)
    Merge(stats, Of(others_, key.first, key.second, stats.method));
}

void CallStats::Append(const PeerAccount& account,
                       std::vector<MethodStats>& to) const {
  for (const auto& [key, stats] : account.methods_) to.push_back(stats);
}

}  // namespace baton::rpc::internal
