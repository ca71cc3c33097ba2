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

struct EmbeddingOptions {
  // A step is done when this trainer need not wait for others any more, such as
  // when the round is over, and not when the servers have the gradients. The
  // next forward then waits for nobody. Elastic trainings need it (elastic.h).
  bool step_awaits_trainers = false;
};

// An embedding whose rows are a table of parameter servers. A forward pulls
// each row that is looked up once. Under a context the rows are a leaf like any
// parameter, and the context holds their gradients. The next
// dist::Optimizer::Step in the context (or Step here) pushes them, and the
// servers step the rows by the table's rule. What the optimizer has for its
// parameters holds for the rows: the factor by which its schedule changes the
// rate of its first group, limits on gradients, whose norm includes the rows',
// and the loss scale.
//
//   ASSIGN_OR_RETURN(auto words, dist::Embedding::Make(client, "words"));
//   dist::Context ctx(agent);
//   ASSIGN_OR_RETURN(const Variable logits,
//                    rest.Forward(ctx, words->Forward(ctx, tokens)).Await());
//   RETURN_IF_ERROR(ctx.Backward(Loss(logits)));
//   RETURN_IF_ERROR(adam.Step(ctx));
//
// A worker that serves calls may also have one. Thread-safe.
class Embedding {
 public:
  // Returns NotFound if the servers have no such table. To push, the client
  // must have joined as a trainer.
  static absl::StatusOr<std::unique_ptr<Embedding>> Make(
      std::shared_ptr<ServerClient> client, const std::string& table,
      const EmbeddingOptions& options = {});

  // Keys i64 [...] -> f32 [..., width], on the keys' device.
  Future<Variable> Forward(const Context& ctx, const Tensor& keys);
  // In the context of the call that is being served.
  Future<Variable> Forward(const rpc::CallContext& call, const Tensor& keys);
  // Without gradients.
  Future<Variable> Forward(const Tensor& keys);

  // Pushes the context's gradients of rows that were looked up here, all in one
  // push. Without any, it is an empty push, for which other trainers wait as
  // for any, and nothing in asynchronous mode. Done when the servers have them.
  // Optimizer::Step does this if anything was looked up in the context, and
  // TakeGradients was not called.
  Future<void> Step(const Context& ctx, const OtherStepSettings& settings = {});
  // Returns these gradients instead, as the context has them, for a push by the
  // caller: bulk-synchronous trainers may need one push for all tables and
  // dense keys.
  std::vector<RowGradients> TakeGradients(const Context& ctx);

 private:
  class Core;
  explicit Embedding(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
};

}  // namespace baton::dist
