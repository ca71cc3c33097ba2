// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "core/ops/optimizer_rules.h"
#include "rpc/codec.h"
#include "rpc/worker.h"

namespace baton::dist {

// The consistency that the trainers of one set of servers get.
enum class Consistency : uint8_t {
  // A round is one push of every trainer. Its gradients are added in the order
  // of the trainers' ranks and step the values once; a trainer that has pushed
  // receives values when the round is over.
  kBulkSynchronous = 0,
  // Every push steps the values at once. A trainer that has pushed more than
  // `staleness` times more often than the slowest one waits for it.
  kBoundedStale = 1,
  // Every push steps the values at once, and no trainer waits (Hogwild).
  kAsynchronous = 2,
};

// "bsp", "ssp" and "async".
const char* Name(Consistency mode);
std::optional<Consistency> ConsistencyFromName(const std::string& name);

// The initial value of an embedding table's row: a function of the seed and the
// key alone, so that it is the same wherever and whenever it is made.
enum class RowStart : uint8_t { kZero = 0, kUniform = 1, kNormal = 2 };

// A table of rows with i64 keys, which exist from their first gradient on, or
// of a fixed size.
struct RowTableOptions {
  std::string name;
  int64_t width = 0;  // elements of a row, f32
  // If above 0, the table has a fixed size: rows 0 .. rows - 1 exist from the
  // beginning. Such a table has no limit, and its rule must step only rows with
  // gradients: SGD and Adagrad without momentum and decay, and SparseAdam.
  int64_t rows = 0;
  RowStart start = RowStart::kZero;
  double scale = 0;  // uniform in [-scale, scale), or the standard deviation
  uint64_t seed = 0;
  // The maximum number of rows over all servers: beyond it, each server forgets
  // those of its rows that were least recently used, that is pulled or pushed.
  // 0: no limit.
  int64_t limit = 0;
  ops::StepRule rule = ops::SgdRule{};
  // Rows lie in the memory of the server's device; if true, in that of its host
  // even if the device is a GPU.
  bool in_host_memory = false;
  static constexpr auto Fields() {
    using T = RowTableOptions;
    return std::tuple{&T::name,  &T::width, &T::rows,
                      &T::start, &T::scale, &T::seed,
                      &T::limit, &T::rule,  &T::in_host_memory};
  }
};

struct ServerOptions {
  ops::StepRule rule = ops::SgdRule{};  // for dense keys; not SparseAdam
  Consistency mode = Consistency::kBulkSynchronous;
  int64_t staleness = 0;  // for kBoundedStale
  // No trainer waits for others before so many have joined; after that, those
  // that are present count.
  int32_t trainers = 1;
  // If given, the workers of those trainers, one for each: a trainer whose
  // worker is lost before it has joined is not waited for, even if another
  // process of the worker's name has come since.
  std::vector<rpc::WorkerInfo> trainer_workers{};
  // A round steps by the mean of its gradients instead of their sum.
  bool average = true;
  // The maximum size of a dense key's part.
  int64_t part_bytes = 4 << 20;
  // Each shard has a second server, which has every update before it is
  // acknowledged. Needs two servers.
  bool backups = false;
  std::vector<RowTableOptions> tables{};
  // The compute threads that step a shard, while its other threads read it for
  // trainers. 0: as many as the server's worker has, but at least an even share
  // of half of the cores that its process may use, among the servers that may
  // use the same ones, and of 16: trainers wait for a step, but no step for
  // theirs.
  int32_t compute_threads = 0;
  static constexpr auto Fields() {
    using S = ServerOptions;
    return std::tuple{&S::rule,
                      &S::mode,
                      &S::staleness,
                      &S::trainers,
                      &S::trainer_workers,
                      &S::average,
                      &S::part_bytes,
                      &S::backups,
                      &S::tables,
                      &S::compute_threads};
  }
};

// Returns InvalidArgument, which names what is wrong.
absl::Status Check(const ServerOptions& options);

// Returns the state tensors that a rule keeps for each parameter, and their
// initial contents.
std::vector<ops::StateSlot> UsedSlots(const ops::StepRule& rule);

}  // namespace baton::dist

namespace baton::rpc {

template <>
struct Codec<ops::StepRule> {
  static void Encode(Encoder& encoder, const ops::StepRule& rule);
  static ops::StepRule Decode(Decoder& decoder);
};

}  // namespace baton::rpc
