// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/device.h"
#include "core/dtype.h"

namespace baton::rpc {

// How a worker computes, as it declares to the other workers. Value type.
struct Compute {
  // The device of modules that name no other device, and of tensors that arrive
  // from other workers' GPUs.
  Device device = Device::Cpu();
  // The dtype of such modules' weights (nn::Module::LowerPrecision): kF32,
  // kBF16 or kF16.
  DType dtype = DType::kF32;
  // Settings of the process (core/precision.h).
  bool tf32 = false;
  bool deterministic = false;

  // The device, then each field that differs from its default: "cuda:1 bf16
  // deterministic".
  std::string ToString() const;
  // Parses the result of ToString; "" is the CPU. Returns InvalidArgument for
  // other texts, since `text` may come from an untrusted peer.
  static absl::StatusOr<Compute> Parse(const std::string& text);
  friend bool operator==(const Compute&, const Compute&) = default;
};

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

namespace internal {

// True if both have the same name and, if `worker`'s incarnation is known, the
// same incarnation.
inline bool IsIncarnation(const WorkerInfo& worker, const WorkerInfo& of) {
  return worker.name == of.name &&
         (worker.incarnation == of.incarnation || worker.incarnation == 0);
}

// True if both have the same name and, if both incarnations are known, the same
// incarnation.
inline bool SameWorker(const WorkerInfo& a, const WorkerInfo& b) {
  return IsIncarnation(a, b) || IsIncarnation(b, a);
}

}  // namespace internal

// The shortest lease. A worker is expected to be heard about every fifth of the
// lease, for which a thread must run at both ends. A busy machine cannot
// guarantee that within less than 20 ms, so with a shorter lease healthy
// workers would be declared dead.
constexpr std::chrono::milliseconds kLeastLease{100};
// The longest lease. A longer one that a peer announces counts as this.
constexpr std::chrono::milliseconds kMostLease = std::chrono::hours(24);

// The part of the lease that a worker may stay silent or away before it is
// declared dead. In the rest, a twentieth, whatever waits for that worker is
// told.
constexpr std::chrono::milliseconds SilenceWithin(
    std::chrono::milliseconds lease) {
  return lease - lease / 20;
}

// Returns InvalidArgument unless kLeastLease <= lease <= kMostLease.
absl::Status CheckLease(std::chrono::milliseconds lease);

}  // namespace baton::rpc
