// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "autograd/distributed/codec_variable.h"
#include "autograd/distributed/engine.h"
#include "autograd/distributed/parameter_list.h"
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

// What Context::Grad is with respect to: a value at this worker, leaf or not,
// or what is behind a handle, wherever that is, once it is there (RRef::Ready):
// a value, or the parameters of a module, all or those that a ParameterSource
// names. Value type.
class GradInput {
 public:
  // NOLINTBEGIN(google-explicit-constructor): each is such an input
  GradInput(Variable value) : value_(std::move(value)) {}
  GradInput(ParameterSource source) : source_(std::move(source)) {}
  template <typename M>
  GradInput(const RRef<M>& object) : source_(ParameterSource(object)) {}
  // NOLINTEND(google-explicit-constructor)

  // Its place, once its owner knows which values are meant.
  Future<GradientPlace> Find(rpc::Agent& agent) const;

 private:
  Variable value_;
  std::optional<ParameterSource> source_;
};

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
  // another context, FailedPrecondition where another backward of this context
  // that has not ended has some node or parameter in common with this one,
  // DeadlineExceeded naming what was waited for. After an error gradients may
  // be incomplete, and another backward may follow.
  absl::Status Backward(const Variable& loss,
                        const BackwardOptions& options = {});
  // From several values, weighted by gradients of their shapes.
  absl::Status Backward(const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options = {});
  Future<void> BackwardAsync(const std::vector<Variable>& roots,
                             const std::vector<Tensor>& grad_outputs = {},
                             const BackwardOptions& options = {});

  // Gradients with respect to `inputs` alone, one tensor for each value of an
  // input, in order; undefined where none came. Nothing is added to the
  // context's gradients. Errors as those of Backward; InvalidArgument for an
  // input that does not require grad.
  absl::StatusOr<std::vector<Tensor>> Grad(
      const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
      const std::vector<Tensor>& grad_outputs = {},
      const BackwardOptions& options = {});
  Future<std::vector<Tensor>> GradAsync(
      const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
      const std::vector<Tensor>& grad_outputs = {},
      const BackwardOptions& options = {});

  // Of leaves at this worker. Undefined where no gradient came; of rows a copy
  // with zeros between them.
  Tensor GradientOf(const Variable& leaf) const;
  std::vector<std::pair<Variable, Tensor>> Gradients() const;
  // Adds them to the leaves' grad(), for code that looks there.
  void WriteToGrad() const;
  // Takes the gradients out of the context, at every worker that has some, and
  // adds them to the leaves' grad() there. FailedPrecondition while a backward
  // runs.
  Future<void> MoveToGrad();

  // What modules at this worker have asked for at the next step
  // (ContextState::OnStep); dist::Optimizer::Step does it.
  Future<void> StepOthers() const { return state_->StepOthers(); }

  // Ends the context early; done when the other workers know. Idempotent.
  Future<void> Release();

 private:
  rpc::Agent* const agent_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ContextState> state_;
};

// The gradients of the context of a call, for handlers. FailedPrecondition when
// the call came without one.
absl::StatusOr<std::shared_ptr<ContextState>> ContextOf(
    const rpc::CallContext& call);

}  // namespace baton::dist
