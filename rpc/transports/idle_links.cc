// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/idle_links.h"

namespace baton::rpc {

void AwaitIdle(LinkHost& host, const std::vector<std::shared_ptr<Link>>& links,
               std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto all_idle = [&links] {
    for (const auto& link : links) {
      if (!link->idle()) return false;
    }
    return true;
  };
  for (;;) {
    uint64_t seen;
    {
      MutexLock lock(host.idle_mutex);
      seen = host.idle_events;
    }
    if (all_idle()) return;
    MutexLock lock(host.idle_mutex);
    while (host.idle_events == seen) {
      if (!host.idle.WaitUntil(host.idle_mutex, deadline)) return;
    }
  }
}

}  // namespace baton::rpc
