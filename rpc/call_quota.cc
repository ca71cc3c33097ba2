// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_quota.h"

#include "absl/strings/str_cat.h"

namespace baton::rpc::internal {

absl::StatusOr<CallQuota::Ticket> CallQuota::Take(const std::string& peer,
                                                  size_t bytes) {
  {
    MutexLock lock(mutex_);
    const auto found = loads_.find(peer);
    const Load load = found == loads_.end() ? Load() : found->second;
    const auto full = [&](size_t waits, const char* what, size_t limit,
                          const char* flag) {
      return absl::ResourceExhaustedError(
          absl::StrCat(waits, what, " of worker ", peer, " wait already, of ",
                       limit, " that may (--", flag, "); try again later"));
    };
    if (load.calls >= max_calls_) {
      return full(load.calls, " calls", max_calls_, "max_calls_per_peer");
    }
    if (load.calls > 0 &&
        (load.bytes > max_bytes_ || bytes > max_bytes_ - load.bytes)) {
      return full(load.bytes, " bytes of calls", max_bytes_,
                  "max_call_bytes_per_peer");
    }
    loads_[peer] = {load.calls + 1, load.bytes + bytes};
  }
  return Ticket(nullptr, [self = shared_from_this(), peer, bytes](void*) {
    self->Give(peer, bytes);
  });
}

void CallQuota::Give(const std::string& peer, size_t bytes) {
  MutexLock lock(mutex_);
  const auto found = loads_.find(peer);
  found->second.bytes -= bytes;
  if (--found->second.calls == 0) loads_.erase(found);
}

}  // namespace baton::rpc::internal
