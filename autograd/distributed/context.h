// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autograd/distributed/codec_variable.h"
#include "autograd/distributed/engine.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "rpc/agent.h"

namespace baton::dist {

// What other workers may ask of this one in a backward; every worker's registry
// needs it.
void Register(rpc::Registry& registry);

// Gives an agent distributed autograd. Call it before the agent serves calls:
//   options.on_start = dist::Attach;
void Attach(rpc::Agent& agent);

// The contexts that are open at this worker, whoever opened them.
std::vector<ContextId> OpenContexts(const rpc::Agent& agent);

// One training step over any number of workers. Calls made with it are
// recorded, and so are the calls that their handlers make in turn; Backward
// then runs from the loss through all of them. Gradients stay in the context,
// at the worker that has the leaf, until an optimizer or the caller takes them;
// contexts of several trainers do not mix.
//
//   dist::Context ctx(agent);
//   Future<Variable> hidden = front.Async<&Stage::Forward>(ctx, images);
//   Future<Variable> logits = back.Async<&Stage::Forward>(ctx, hidden);
//   RETURN_IF_ERROR(ctx.Backward(nn::CrossEntropy(logits.Await(), labels)));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// Its end ends it on every worker. Must not outlive the agent. Thread-safe.
class Context {
 public:
  // Throws Error unless Attach was called on `agent`.
  explicit Context(rpc::Agent& agent);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextId& id() const { return state_->id(); }
  std::shared_ptr<rpc::CallScope> call_scope() const { return state_; }

  // Gradients of `loss`, a local value of one number, for every leaf below it
  // at whatever worker. Only what the loss reaches is waited for. Repeated
  // backwards add up; without retain_graph each needs a new graph. Errors name
  // the worker: InvalidArgument for a value without graph or with one of
  // another context, FailedPrecondition
  // while another backward of this context runs, DeadlineExceeded naming what
  // was waited for. After an error gradients may be incomplete.
  absl::Status Backward(const Variable& loss,
                        const BackwardOptions& options = {});
  // From several values, weighted by gradients of their shapes.
  absl::Status Backward(const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options = {});
  Future<void> BackwardAsync(const std::vector<Variable>& roots,
                             const std::vector<Tensor>& grad_outputs = {},
                             const BackwardOptions& options = {});

  // Of leaves at this worker. Undefined where no gradient came; of rows a copy
  // with zeros between them.
  Tensor GradientOf(const Variable& leaf) const;
  std::vector<std::pair<Variable, Tensor>> Gradients() const;
  // Adds them to the leaves' grad(), for code that looks there.
  void WriteToGrad() const;

  // Ends the context early; done when the other workers know. Idempotent.
  Future<void> Release();

 private:
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ContextState> state_;
};

// The gradients of the context of a call, for handlers. FailedPrecondition when
// the call came without one.
absl::StatusOr<std::shared_ptr<ContextState>> ContextOf(
    const rpc::CallContext& call);

}  // namespace baton::dist
