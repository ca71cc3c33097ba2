// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "rpc/transport.h"
#include "tests/rpc/relay.h"

namespace baton::testing {

// All ways between one worker and its cluster, through relays, so that they can
// be cut at once: a partition. They are TCP connections of 127.0.0.1; what goes
// by shared memory or by a tensor port is not cut. Must outlive the worker.
// Thread-safe.
class Cable {
 public:
  // The way to `server`.
  std::string To(const std::string& server);
  // The worker's transport, which others reach through the cable, too.
  std::unique_ptr<rpc::Transport> Through(
      std::unique_ptr<rpc::Transport> transport);
  // As those of a Relay.
  void Cut();
  void Mend();

 private:
  Mutex mutex_;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::unique_ptr<Relay>> relays_
      ABSL_GUARDED_BY(mutex_);  // by server
};

}  // namespace baton::testing
