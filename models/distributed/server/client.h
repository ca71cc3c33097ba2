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

// The result of a pull. Plain data.
struct Pulled {
  // For each shard: its version, the trainers' clocks, and its values if
  // requested.
  std::vector<ExchangeReply> shards;
  std::vector<Tensor> rows;  // f32 [N, width] for each requested table
  std::shared_ptr<const KeyLayout> layout;

  // Writes the values into tensors of the keys' shapes, in the order of keys.
  void CopyTo(const std::vector<Tensor>& tensors) const;
  // The number of updates that the values have: of rounds in bulk-synchronous
  // mode, else of pushes. All shards have it after a pull of one version,
  // unless a trainer was lost while it pushed; the largest one if they differ.
  int64_t Version() const;
  // The versions of a key's parts; several if the key is spread over shards.
  std::vector<int64_t> Versions(int32_t key) const;
};

// What one call pushes and pulls.
struct Trade {
  // One for each key, in order, or none at all. Do not write these tensors, or
  // the row gradients, until the trade is done: they may have to be sent again.
  std::vector<Tensor> gradients{};
  std::vector<RowGradients> row_gradients{};
  bool push = true;  // false: no gradients are sent, and no push is counted
  bool values = false;
  std::vector<RowKeys> rows{};
  // Pull values and rows of one version from all shards: each push is in all of
  // them or in none. Only a push whose trainer was lost or left before it was
  // answered may be in some for good. Unset: for
  // clients without a rank in bulk-synchronous mode. By mode:
  //  - Bulk-synchronous: trainers have one version anyway. A client without a
  //    rank may meet the end of a round.
  //  - Bounded-stale and asynchronous: shards take pushes in orders of their
  //    own, and any client may meet pushes on their way.
  // A client that meets some asks each shard twice more. Between the two,
  // pushes that no shard has taken wait, also in asynchronous mode; the client
  // waits for the others to arrive everywhere. If one does not by the client's
  // timeout, the trade fails with Aborted, which names the shards' versions;
  // meanwhile pushes wait for ServerShard::kLongestHold at a time.
  std::optional<bool> one_version{};
};

struct ClientOptions {
  // The limit of each call with all its repetitions; default: the agent's.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  Compression compression{};  // of dense gradients
};

// A trainer's client of parameter servers. If servers are lost it finds their
// successors and repeats unanswered requests, which then count once. Pushes
// reach each shard in the order in which they were made. A push that ends with
// Unavailable or DeadlineExceeded may be at some shards: the client keeps a
// copy and brings it to the others before its next push, which reaches no shard
// until then, so do not push these gradients again. Futures end by the timeout.
// Must not outlive the agent. Thread-safe.
class ServerClient {
 public:
  // Joins as a trainer. Each trainer has a rank of its own; gradients are added
  // in the order of ranks. Without a rank the client can only pull, and waits
  // for no trainer but for one whose push is on its way (Trade::one_version).
  // Waits for the servers; returns Unavailable if the
  // directory's worker is lost.
  static absl::StatusOr<std::unique_ptr<ServerClient>> Join(
      rpc::Agent& agent, const RRef<ServerDirectory>& directory,
      std::optional<int64_t> rank, const ClientOptions& options = {});
  ~ServerClient();

  // Returns a directory for newcomers; it works even if the directory that this
  // client was given is lost.
  RRef<ServerDirectory> directory() const;
  const ServerOptions& options() const;
  const KeyLayout& layout() const;
  // Returns the index of a table in ServerOptions::tables; -1 if there is none.
  int32_t TableOf(const std::string& name) const;
  // The epoch in which the shard was last found; each change of its servers
  // begins a new one. 0 if it was never looked up.
  int64_t EpochOf(int32_t shard) const;

  Future<Pulled> Do(Trade trade);
  // `gradients` has one gradient for each key, in order.
  Future<Pulled> Push(std::vector<Tensor> gradients) {
    return Do({.gradients = std::move(gradients)});
  }
  Future<Pulled> PushPull(std::vector<Tensor> gradients) {
    return Do({.gradients = std::move(gradients), .values = true});
  }
  Future<Pulled> Pull() { return Do({.push = false, .values = true}); }
  Future<Tensor> PullRows(int32_t table, const Tensor& keys);

  // Other trainers no longer wait for this one, which from then on can only
  // read. The destructor does the same without waiting for answers. Returns the
  // first error of a shard.
  absl::Status Leave();

 private:
  class Core;
  explicit ServerClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

}  // namespace baton::dist
