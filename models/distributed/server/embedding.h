// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/distributed/context.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "models/distributed/server/client.h"
#include "rpc/call_context.h"

namespace baton::dist {

// An embedding whose rows are a table of parameter servers. A forward pulls the
// rows that are looked up, each once; under a context they are a leaf like any
// parameter, and their gradients are in the context. The next
// dist::Optimizer::Step in it (or Step here) pushes them, and the servers step
// the rows by the table's rule; limits to the norm of gradients leave them out.
//
//   ASSIGN_OR_RETURN(auto words, dist::Embedding::Make(client, "words"));
//   dist::Context ctx(agent);
//   Future<Variable> logits = rest.Forward(ctx, words->Forward(ctx, tokens));
//   RETURN_IF_ERROR(ctx.Backward(Loss(logits)));
//   RETURN_IF_ERROR(adam.Step(ctx));
//
// A worker that serves calls may have one, too. Thread-safe.
class Embedding {
 public:
  // NotFound where the servers have no such table; to push, the client must
  // have joined as a trainer.
  static absl::StatusOr<std::unique_ptr<Embedding>> Make(
      std::shared_ptr<ServerClient> client, const std::string& table);

  // Keys i64 [...] -> f32 [..., width], on the keys' device.
  Future<Variable> Forward(const Context& ctx, const Tensor& keys);
  // In the context of a call that is served.
  Future<Variable> Forward(const rpc::CallContext& call, const Tensor& keys);
  // Without gradients.
  Future<Variable> Forward(const Tensor& keys);

  // Pushes what the context has of rows that were looked up here, all in one
  // push, or none where it has nothing; done when the servers have it.
  Future<void> Step(const Context& ctx);
  // The same for a push of the caller's own, which a round of bulk-synchronous
  // trainers may need: one for all tables and dense keys.
  std::vector<RowGradients> TakeGradients(const Context& ctx);

 private:
  class Core;
  explicit Embedding(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

}  // namespace baton::dist
