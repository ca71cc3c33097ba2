// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_stats.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace baton::rpc::internal {
namespace {

constexpr size_t kMaxEntries = 4096;

}  // namespace

CallStats::Entry& CallStats::Find(Side side, const std::string& peer,
                                  MethodKey method,
                                  const std::string& method_name) {
  Key key{side, peer, method};
  MutexLock lock(mutex_);
  auto found = entries_.find(key);
  if (found != entries_.end()) return *found->second;
  const bool full = entries_.size() >= kMaxEntries;
  if (full) key = {side, "others", {}};
  std::unique_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>();
    entry->peer = key.peer;
    entry->method = full ? "others" : method_name;
    entry->side = side;
  }
  return *entry;
}

void CallStats::Add(Side side, const std::string& peer, MethodKey method,
                    const std::string& method_name, const Ended& ended) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  Entry& entry = Find(side, peer, method, method_name);
  entry.calls.fetch_add(1, kRelaxed);
  if (!ended.ok) entry.failed.fetch_add(1, kRelaxed);
  entry.bytes_sent.fetch_add(ended.bytes_sent, kRelaxed);
  entry.bytes_received.fetch_add(ended.bytes_received, kRelaxed);
  entry.total_us.fetch_add(ended.micros, kRelaxed);
  entry.latency.Add(ended.micros);
}

std::vector<MethodStats> CallStats::All() const {
  std::vector<MethodStats> all;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      all.push_back({.peer = entry->peer,
                     .method = entry->method,
                     .incoming = entry->side == Side::kCallee,
                     .calls = entry->calls,
                     .failed = entry->failed,
                     .bytes_sent = entry->bytes_sent,
                     .bytes_received = entry->bytes_received,
                     .total_us = entry->total_us,
                     .latency = entry->latency.Counts()});
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.incoming, a.peer, a.method) <
           std::tie(b.incoming, b.peer, b.method);
  });
  return all;
}

}  // namespace baton::rpc::internal
