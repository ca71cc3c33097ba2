// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/tensor.h"
#include "models/distributed/server/compression.h"
#include "models/distributed/server/directory.h"
#include "models/distributed/server/shard.h"
#include "rpc/agent.h"

namespace baton::dist {

// What was pulled. Plain data.
struct Pulled {
  // Of each shard: its version, the clocks of trainers, its values if wanted.
  std::vector<ExchangeReply> shards;
  std::vector<Tensor> rows;  // f32 [N, width] of each table that was asked for
  std::shared_ptr<const KeyLayout> layout;

  // Writes the values into tensors of the keys' shapes, in the order of keys.
  void CopyTo(const std::vector<Tensor>& tensors) const;
  // The version of a key's parts: more than one where it lies at several
  // shards.
  std::vector<int64_t> Versions(int32_t key) const;
};

// What to push and what to pull, in one call.
struct Trade {
  // One for each key, in order, or none at all. They, and the others, are not
  // to be written until the trade is done: it may have to be sent again.
  std::vector<Tensor> gradients{};
  std::vector<RowGradients> row_gradients{};
  bool push = true;  // false: the gradients are none, and no push is counted
  bool values = false;
  std::vector<RowKeys> rows{};
};

struct ClientOptions {
  // Of each call, however often it is made again; else the agent's.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  Compression compression{};  // of dense gradients
};

// A trainer's side of parameter servers. Finds the servers again when they are
// lost, and repeats what was not answered, which then counts once. Pushes reach
// each shard in the order in which they were made. Futures end by the timeout.
// Must not outlive the agent. Thread-safe.
class ServerClient {
 public:
  // As one of the trainers; ranks, in the order of which gradients are added,
  // are each trainer's own. Without a rank: one who only pulls, and waits for
  // nobody. Waits for the servers. Unavailable when the directory's worker is
  // lost.
  static absl::StatusOr<std::unique_ptr<ServerClient>> Join(
      rpc::Agent& agent, const RRef<ServerDirectory>& directory,
      std::optional<int64_t> rank, const ClientOptions& options = {});
  ~ServerClient();

  // What newcomers find the servers by, also where the one that this client was
  // given is lost.
  RRef<ServerDirectory> directory() const;
  const ServerOptions& options() const;
  const KeyLayout& layout() const;
  // The number of a table in ServerOptions::tables; -1: there is none.
  int32_t TableOf(const std::string& name) const;
  // In which the shard was last found: each change of its servers begins one.
  // 0: it was not looked for.
  int64_t EpochOf(int32_t shard) const;

  Future<Pulled> Do(Trade trade);
  // Gradients of all keys, in order.
  Future<Pulled> Push(std::vector<Tensor> gradients) {
    return Do({.gradients = std::move(gradients)});
  }
  Future<Pulled> PushPull(std::vector<Tensor> gradients) {
    return Do({.gradients = std::move(gradients), .values = true});
  }
  Future<Pulled> Pull() { return Do({.push = false, .values = true}); }
  Future<Tensor> PullRows(int32_t table, const Tensor& keys);

  // The others wait for this trainer no more; from then on it only reads. The
  // client's end does the same, and waits for no answer. Gives the first error
  // of a shard.
  absl::Status Leave();

 private:
  class Core;
  explicit ServerClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

}  // namespace baton::dist
