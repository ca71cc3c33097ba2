// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "rpc/compute.h"

namespace baton::rpc {

// A worker's 0-based position in its cluster. Stable for one incarnation.
enum class Rank : int32_t {};

// One member of a cluster. A process that restarts under the same name is a new
// incarnation; ids made by the old one are refused. Value type.
struct WorkerInfo {
  std::string name;
  Rank rank{};
  uint64_t incarnation = 0;  // random, never 0
  std::string address;       // "host:port" or "unix:path"
  Compute compute{};         // as the worker declared it
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// A change of another worker of the cluster, as this worker sees it.
struct MemberEvent {
  enum class Kind {
    kJoined,  // it can be called, perhaps again after it was lost
    kBroken,  // its connection broke; it may come back within the lease
    kLeft,    // it shut down in order, or was removed
    kLost,    // it died or was silent for too long; its handles were dropped
  } kind = Kind::kJoined;
  WorkerInfo worker;
  // OK when it joined. DeadlineExceeded if it was silent and its connection did
  // not end: its process may be there.
  absl::Status cause;
};

// Returns OK for 1 to 127 letters, digits, '-', '_', ':' and '.'.
absl::Status CheckWorkerName(const std::string& name);

}  // namespace baton::rpc
