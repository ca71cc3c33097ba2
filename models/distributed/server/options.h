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

namespace baton::dist {

// What trainers of one set of servers promise each other.
enum class Consistency : uint8_t {
  // A round is one push of every trainer. Its gradients are added in the order
  // of the trainers' ranks and step the values once; who has pushed is given
  // values when the round is over.
  kBulkSynchronous = 0,
  // Every push steps the values at once. A trainer that has pushed more than
  // `staleness` times more often than the slowest one waits for it.
  kBoundedStale = 1,
  // Every push steps the values at once, and nobody waits (Hogwild).
  kAsynchronous = 2,
};

// "bsp", "ssp" and "async".
const char* Name(Consistency mode);
std::optional<Consistency> ConsistencyFromName(const std::string& name);

// What a row of an embedding table is before its first gradient: a function of
// seed and key alone, so that it is the same wherever and whenever it is made.
enum class RowStart : uint8_t { kZero = 0, kUniform = 1, kNormal = 2 };

// A table of rows by i64 keys, which are there from their first gradient on; or
// of a fixed size.
struct RowTableOptions {
  std::string name;
  int64_t width = 0;  // elements of a row, f32
  // Above 0: rows 0 .. rows - 1 are there from the beginning, each server's in
  // one tensor on its device. Without a limit, by rules that step rows alone:
  // SGD and Adagrad without momentum and decay, and SparseAdam.
  int64_t rows = 0;
  RowStart start = RowStart::kZero;
  double scale = 0;  // uniform in [-scale, scale), or the standard deviation
  uint64_t seed = 0;
  // Rows of the table at most, over all servers: beyond, each forgets those of
  // its own that were used, pulled or pushed, least recently. 0: no limit.
  int64_t limit = 0;
  ops::StepRule rule = ops::SgdRule{};
  static constexpr auto Fields() {
    using T = RowTableOptions;
    return std::tuple{&T::name,  &T::width, &T::rows,  &T::start,
                      &T::scale, &T::seed,  &T::limit, &T::rule};
  }
};

struct ServerOptions {
  ops::StepRule rule = ops::SgdRule{};  // of dense keys; not SparseAdam
  Consistency mode = Consistency::kBulkSynchronous;
  int64_t staleness = 0;  // of kBoundedStale
  // Nobody is waited for before so many have joined; then those that are there
  // count.
  int32_t trainers = 1;
  // A round steps by the mean of its gradients, not their sum.
  bool average = true;
  // A dense key is cut into parts of so many bytes at most.
  int64_t part_bytes = 4 << 20;
  // Each shard has a second server that has every update before it is
  // acknowledged. Needs two servers.
  bool backups = false;
  std::vector<RowTableOptions> tables{};
  static constexpr auto Fields() {
    using S = ServerOptions;
    return std::tuple{&S::rule,    &S::mode,       &S::staleness, &S::trainers,
                      &S::average, &S::part_bytes, &S::backups,   &S::tables};
  }
};

// InvalidArgument names what is wrong.
absl::Status Check(const ServerOptions& options);

// How many tensors a rule keeps of a parameter, and what is in them at first.
std::vector<ops::StateSlot> UsedSlots(const ops::StepRule& rule);

}  // namespace baton::dist

namespace baton::rpc {

template <>
struct Codec<ops::StepRule> {
  static void Encode(Encoder& encoder, const ops::StepRule& rule);
  static ops::StepRule Decode(Decoder& decoder);
};

}  // namespace baton::rpc
