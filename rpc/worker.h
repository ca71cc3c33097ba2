// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "rpc/compute.h"

namespace baton::rpc {

// Position of a worker in its cluster, 0-based. Stable for one incarnation.
enum class Rank : int32_t {};

// One member of a cluster. A process that starts again under the same name is a
// new incarnation: ids made by the old one are refused. Value type.
struct WorkerInfo {
  std::string name;
  Rank rank{};
  uint64_t incarnation = 0;  // random, never 0
  std::string address;       // "host:port" or "unix:path"
  Compute compute{};         // as it has declared
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// What became of another worker of the cluster, as one of them sees it.
struct MemberEvent {
  enum class Kind {
    kJoined,  // it can be called; once more, if it had been lost
    kBroken,  // its connection broke; it may come back within the lease
    kLeft,    // it has ended in order, or was removed
    kLost,    // it died, or was silent for too long: what it held is given up
  } kind = Kind::kJoined;
  WorkerInfo worker;
  absl::Status cause;  // OK when it joined
};

// Letters, digits, '-', '_', ':' and '.'; 1 to 127 of them.
absl::Status CheckWorkerName(const std::string& name);

}  // namespace baton::rpc
