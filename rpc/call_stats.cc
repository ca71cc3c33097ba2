// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_stats.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "rpc/shown_name.h"

namespace baton::rpc::internal {
namespace {

constexpr size_t kMaxEntries = 4096;
constexpr const char* kOthers = "others";

}  // namespace

CallStats::Entry& CallStats::FindLocked(const Key& wanted,
                                        const std::string& method_name) {
  auto found = entries_.find(wanted);
  if (found != entries_.end()) return *found->second;
  const bool full = entries_.size() >= kMaxEntries;
  const Key key = full ? Key{wanted.side, kOthers, {}} : wanted;
  std::unique_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>();
    entry->peer = key.peer;
    entry->method = full ? kOthers : ShownName(method_name);
    entry->side = key.side;
  }
  return *entry;
}

void CallStats::Add(Side side, const std::string& peer, MethodKey method,
                    const std::string& method_name, const Ended& ended) {
  MutexLock lock(mutex_);
  Entry& entry = FindLocked({side, peer, method}, method_name);
  ++entry.calls;
  if (!ended.ok) ++entry.failed;
  entry.bytes_sent += ended.bytes_sent;
  entry.bytes_received += ended.bytes_received;
  entry.total_us += ended.micros;
  entry.latency.Add(ended.micros);
}

void CallStats::Forget(const std::string& peer) {
  MutexLock lock(mutex_);
  std::vector<std::pair<Key, std::unique_ptr<Entry>>> forgotten;
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->first.peer == peer) {
      forgotten.emplace_back(it->first, std::move(it->second));
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  for (const auto& [key, entry] : forgotten) {
    Entry& others = FindLocked({key.side, kOthers, key.method}, entry->method);
    others.calls += entry->calls;
    others.failed += entry->failed;
    others.bytes_sent += entry->bytes_sent;
    others.bytes_received += entry->bytes_received;
    others.total_us += entry->total_us;
    others.latency.Add(entry->latency);
  }
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
