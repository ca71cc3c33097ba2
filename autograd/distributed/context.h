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

// Registers the calls that workers make to each other in a backward; every
// worker's registry needs this.
void Register(rpc::Registry& registry);

// Adds distributed autograd to an agent. Call it before the agent serves calls:
//   options.on_start = dist::Attach;
void Attach(rpc::Agent& agent);

// Returns the contexts that are open at this worker, whoever opened them.
std::vector<ContextId> OpenContexts(const rpc::Agent& agent);

// An input that Context::Grad differentiates with respect to: a value at this
// worker, leaf or not, or the object behind an RRef at any worker, once it
// exists (RRef::Ready). Such an object is a value or a module, of which a
// ParameterSource may select some parameters. Value type.
class GradInput {
 public:
  // NOLINTBEGIN(google-explicit-constructor): each of these is an input
  GradInput(Variable value) : value_(std::move(value)) {}
  GradInput(ParameterSource source) : source_(std::move(source)) {}
  template <typename M>
  GradInput(const RRef<M>& object) : source_(ParameterSource(object)) {}
  // NOLINTEND(google-explicit-constructor)

  // Returns the input's place, once its owner has listed the values.
  Future<GradientPlace> Find(rpc::Agent& agent) const;

 private:
  Variable value_;
  std::optional<ParameterSource> source_;
};

// One training step over any number of workers. Calls made with it are
// recorded, and so are the calls that their handlers make; Backward then runs
// from the loss through all of them. Gradients stay in the context, at the
// worker that has the leaf, until an optimizer or the caller takes them;
// contexts of different trainers are independent.
//
//   dist::Context ctx(agent);
//   Future<Variable> hidden = front.Async<&Stage::Forward>(ctx, images);
//   Future<Variable> logits = back.Async<&Stage::Forward>(ctx, hidden);
//   RETURN_IF_ERROR(ctx.Backward(nn::CrossEntropy(logits.Await(), labels)));
//   RETURN_IF_ERROR(sgd.Step(ctx));
//
// The destructor ends the context on every worker. Must not outlive the agent.
// Thread-safe.
class Context {
 public:
  // Throws Error unless Attach was called on `agent`.
  explicit Context(rpc::Agent& agent);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextId& id() const { return state_->id(); }
  std::shared_ptr<rpc::CallScope> call_scope() const { return state_; }

  // Computes the gradients of `loss`, a local value with one element, for every
  // leaf that it depends on, at any worker. Waits only for what the loss
  // depends on. Repeated backwards add up; without retain_graph each needs a
  // new graph. Errors name the worker: InvalidArgument for a value without a
  // graph or with one of another context, FailedPrecondition if another
  // unfinished backward of this context shares a node or parameter with this
  // one, and DeadlineExceeded, which names what was waited for. After an error
  // gradients may be incomplete, and another backward may follow.
  absl::Status Backward(const Variable& loss,
                        const BackwardOptions& options = {});
  // Starts from several values, weighted by gradients of their shapes.
  absl::Status Backward(const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options = {});
  Future<void> BackwardAsync(const std::vector<Variable>& roots,
                             const std::vector<Tensor>& grad_outputs = {},
                             const BackwardOptions& options = {});

  // Computes gradients with respect to `inputs` only: one tensor for each value
  // of an input, in order; undefined if there is none. The context's gradients
  // stay unchanged. Errors are those of Backward, and InvalidArgument for an
  // input that does not require grad.
  absl::StatusOr<std::vector<Tensor>> Grad(
      const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
      const std::vector<Tensor>& grad_outputs = {},
      const BackwardOptions& options = {});
  Future<std::vector<Tensor>> GradAsync(
      const std::vector<Variable>& roots, const std::vector<GradInput>& inputs,
      const std::vector<Tensor>& grad_outputs = {},
      const BackwardOptions& options = {});

  // Returns the gradient of a leaf at this worker; undefined if there is none.
  // A gradient of rows is returned as a dense copy, with zeros for the other
  // rows.
  Tensor GradientOf(const Variable& leaf) const;
  std::vector<std::pair<Variable, Tensor>> Gradients() const;
  // Adds the gradients to the leaves' grad(), for code that reads them there.
  void WriteToGrad() const;
  // At every worker, takes the gradients out of the context and adds them to
  // the leaves' grad(). Returns FailedPrecondition while a backward runs.
  Future<void> MoveToGrad();

  // Runs what modules at this worker have requested for the next step
  // (ContextState::OnStep); dist::Optimizer::Step calls this.
  Future<void> StepOthers(const OtherStepSettings& settings = {}) const {
    return state_->StepOthers(settings);
  }

  // Ends the context early; done when the other workers know. Idempotent.
  Future<void> Release();

 private:
  rpc::Agent* const agent_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<ContextState> state_;
};

// For handlers: returns the context of a call, with its gradients;
// FailedPrecondition if the call came without one.
absl::StatusOr<std::shared_ptr<ContextState>> ContextOf(
    const rpc::CallContext& call);

}  // namespace baton::dist
