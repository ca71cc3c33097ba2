// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/stream_count.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::rpc {

uint64_t StreamCount::Add() {
  MutexLock lock(mutex_);
  const uint64_t stream = next_++;
  alive_[stream];
  return stream;
}

void StreamCount::Owes(uint64_t stream, const std::string& worker,
                       size_t bytes) {
  MutexLock lock(mutex_);
  auto found = alive_.find(stream);
  if (found != alive_.end()) found->second = {worker, bytes};
}

void StreamCount::Remove(uint64_t stream) {
  MutexLock lock(mutex_);
  alive_.erase(stream);
  if (alive_.empty()) none_.NotifyAll();
}

int StreamCount::count() const {
  MutexLock lock(mutex_);
  return static_cast<int>(alive_.size());
}

void StreamCount::AwaitNone() const {
  MutexLock lock(mutex_);
  while (!alive_.empty()) none_.Wait(mutex_);
}

std::string StreamCount::Describe() const {
  std::map<std::string, size_t> owed;
  size_t nameless = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [stream, debt] : alive_) {
      if (debt.worker.empty()) {
        ++nameless;
      } else {
        owed[debt.worker] += debt.bytes;
      }
    }
  }
  std::vector<std::string> parts;
  for (const auto& [worker, bytes] : owed) {
    parts.push_back(absl::StrCat("worker ", worker, " has not taken ", bytes,
                                 " bytes that were on their way"));
  }
  if (nameless > 0) {
    parts.push_back(
        absl::StrCat(nameless, " connections to nobody in particular"));
  }
  if (parts.empty()) return "its own threads, which have not ended yet";
  return absl::StrJoin(parts, "; ");
}

}  // namespace baton::rpc
