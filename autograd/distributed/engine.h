// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "autograd/distributed/kept_markings.h"
#include "autograd/distributed/peers.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/call_scope.h"
#include "rpc/object_lock.h"
#include "rpc/view.h"
#include "rpc/worker.h"

namespace baton::dist {

// How a backward finds out what takes part in it.
enum class Markings {
  // What the loss reaches, exactly: asked of the workers, once for each form of
  // the graph.
  kExact,
  // Everything: each value that a call of the context carried to a worker and
  // that required grad is assumed to be used by the loss. Nobody is asked, and
  // no signature is compared; a value that the loss does not use is waited for
  // until the deadline, which names it.
  kFast,
};

using LeafTaker =
    std::function<bool(const Variable& leaf, const Gradient& gradient)>;

struct BackwardOptions {
  bool retain_graph = false;  // keep the graph for one more backward
  std::chrono::milliseconds timeout = kDefaultAwait;
  Markings markings = Markings::kExact;
  // Offered the gradient of each leaf at the root's worker, once nothing more
  // comes to it in this backward, from whatever thread runs the node, one after
  // the other: true where it has taken it, which keeps it out of the context.
  // Not called any more once the backward is over.
  LeafTaker take = nullptr;
  // Gradients that can be differentiated again. There are none: Unimplemented.
  bool create_graph = false;
};

// A place whose gradient is asked for: a value here, or parameters elsewhere.
struct GradientPlace {
  Variable here = {};
  std::string worker = "";
  RRef<ParameterList> there = {};  // of `worker`
};

// Distributed autograd of one worker: its contexts, and its side of every
// backward that crosses it. A backward runs in two waves, neither of which
// holds a thread while it waits:
//
//   mark    The root searches its graph from the loss. To each worker whose
//           values it reaches it sends MARK with the edges; that one searches
//           on from them, marks further workers, and answers when those have.
//           So the root's answers come when every reached node is known.
//   run     The root feeds its graph. Where a graph ends at a received value
//           the gradient goes to its sender, whose graph it feeds. The root
//           asks each participant for FINISH and is done when all are.
//
// The root keeps the newest markings by the signature of the graph: each value
// that was received brought that of the sender's graph, which has in it those
// of what the sender received, so that the root knows, without a message,
// whether all of the graph is of a form that it has marked. Then it sends no
// MARK; FINISH says what takes part. A gradient may come before FINISH and
// waits for it.
//
// Backwards of one context may run beside each other where, at each worker,
// they have no node in common; a parameter counts as one. Otherwise the later
// one fails with FailedPrecondition.
//
// The first error anywhere fails the backward and aborts the share of every
// participant. A context ends on all workers with Release; the ids of ended
// ones are kept a while (the newest 65536), so that a call that was under way
// is refused instead of bringing its context back to life. It also ends where
// its root is lost, and for no other reason: a worker that hears of the loss of
// the root, or of the opener who would have passed on the root's Release, asks
// the root, and goes on with the context if that is there. Thread-safe.
class Engine final : public rpc::CallScopeFactory,
                     public std::enable_shared_from_this<Engine> {
 public:
  // `executor`, which outlives it, runs the parts of backwards.
  Engine(rpc::WorkerInfo self, Executor* executor,
         std::shared_ptr<Peers> peers);
  ~Engine() override;

  absl::StatusOr<std::shared_ptr<rpc::CallScope>> Open(
      const rpc::WorkerInfo& from, const std::string& bytes) override;

  // A new context that is rooted here.
  std::shared_ptr<ContextState> NewContext();
  // Ends it everywhere; ready when every worker that could be reached knows.
  Future<void> Release(const ContextId& context);

  // Gradients of the roots weighted by `grad_outputs` (undefined or missing:
  // ones, for one-element roots), added to the context where the leaves are.
  // After an error the context's gradients may be incomplete, and no node runs
  // any more, but at workers that did not say so within a second.
  // InvalidArgument for bad roots, FailedPrecondition where another backward of
  // the context has some of the nodes, DeadlineExceeded naming what was waited
  // for.
  Future<void> Backward(const std::shared_ptr<ContextState>& context,
                        const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options);
  // The same, but the gradients of `places`, for each those of its values in
  // order, undefined where none came; nothing is added to the context.
  Future<std::vector<Tensor>> Gradients(
      const std::shared_ptr<ContextState>& context,
      const std::vector<Variable>& roots,
      const std::vector<GradientPlace>& places,
      const std::vector<Tensor>& grad_outputs, const BackwardOptions& options);
  // Has every worker put the context's gradients into their leaves' grad().
  Future<void> MoveToGrad(const std::shared_ptr<ContextState>& context);

  Future<Marking> OnMark(const std::string& from, const MarkRequest& request);
  absl::StatusOr<WantedPlaces> OnWant(const std::string& from,
                                      const PassRequest& request,
                                      const ParameterList& parameters);
  absl::Status OnGradient(const std::string& from, GradientMessage message);
  Future<std::vector<Tensor>> OnFinish(const std::string& from,
                                       const FinishRequest& request);
  Future<std::string> OnAbort(const ContextId& context, PassId pass,
                              const absl::Status& why);
  Future<void> OnMove(const std::string& from, const ContextId& context,
                      uint64_t number);
  Future<void> OnRelease(const std::string& from, const ContextId& context,
                         const std::string& why);
  absl::Status OnJoin(const std::string& from, const ContextId& context);
  // Of a connection that broke; the worker may live.
  void OnWorkerLost(const std::string& worker);

  // Of all parameters here: backwards run beside each other, and beside no step
  // of an optimizer.
  const std::shared_ptr<rpc::ObjectLock>& parameters() const {
    return parameters_;
  }

  size_t num_contexts() const;
  std::vector<ContextId> contexts() const;
  // The table "contexts" of Agent::AddView.
  rpc::View View() const;

 private:
  class Run;

  using Received = std::vector<std::shared_ptr<ReceiveNode>>;

  absl::StatusOr<std::shared_ptr<ContextState>> Find(const ContextId& id) const;
  // Made where it is new here; Aborted where it has ended.
  absl::StatusOr<std::shared_ptr<ContextState>> FindOrMake(
      const ContextId& id, const std::string& opened_by);
  // `places` null: a backward.
  Future<std::vector<Tensor>> StartRun(
      const std::shared_ptr<ContextState>& context,
      const std::vector<Variable>& roots,
      const std::vector<GradientPlace>* places,
      const std::vector<Tensor>& grad_outputs, const BackwardOptions& options);
  std::shared_ptr<ContextState> MakeLocked(const ContextId& id,
                                           const std::string& opened_by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `take`: as BackwardOptions has it.
  absl::StatusOr<std::shared_ptr<Pass>> OpenPass(
      const std::shared_ptr<ContextState>& context, PassId id,
      PassId oldest = PassId{}, const LeafTaker& take = nullptr);
  // Marks a pass and feeds what came before; what it reaches of other workers.
  absl::StatusOr<Received> Mark(const ContextId& context,
                                const std::shared_ptr<Pass>& pass,
                                const Pass::Nodes& roots,
                                const PassRequest& request);
  // Sends on a wave of marks; what takes part from here on.
  Future<Marking> MarkOnwards(const PassRequest& request,
                              const std::shared_ptr<Pass>& pass,
                              const Received& reached);
  absl::StatusOr<Pass::Nodes> SendsOf(const ContextState& context,
                                      const std::vector<uint64_t>& edges) const;
  // Without marks, at one who shares in `pass`.
  absl::StatusOr<Future<std::vector<Tensor>>> Finish(
      const std::string& from, const FinishRequest& request);
  // Once the pass and `others` have finished: what was asked for, unless the
  // pass keeps that, and itself, for the root.
  static Future<std::vector<Tensor>> AnswerOf(
      const std::shared_ptr<ContextState>& context,
      const std::shared_ptr<Pass>& pass, const Future<void>& others,
      bool keeps);
  // Those that this worker sent values of the context to, or has them from.
  std::set<std::string> Neighbours(const ContextState& context,
                                   const Received& reached) const;
  // Asks `workers` to finish all that they have, too.
  Future<void> FinishAll(const std::set<std::string>& workers,
                         const FinishRequest& request, Pass& pass);
  // Has the executor run `task` while no optimizer steps.
  void UseParameters(const char* method, Task task);
  // Has the executor run what the gradients make ready.
  void Feed(const std::shared_ptr<Pass>& pass,
            std::shared_ptr<autograd::Node> root, std::vector<Tensor> grads);
  Future<void> SendGradient(const ContextId& context, const Pass& pass,
                            const ReceiveNode& edge,
                            const std::vector<Tensor>& grads);
  bool IsRoot(const ContextId& context) const {
    return context.root == self_.name &&
           context.incarnation == self_.incarnation;
  }
  // Ends the context here if its root does not answer for it.
  void AskRoot(const ContextId& id);
  // Here, and then at those that this worker sent to, but `except`.
  Future<void> End(const ContextId& id, const std::string& except,
                   const std::string& why);
  void BuryLocked(const ContextId& id, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerInfo self_;
  Executor* const executor_;
  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<rpc::ObjectLock> parameters_;
  KeptMarkings markings_;
  mutable Mutex mutex_;
  uint64_t last_context_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ContextId, std::shared_ptr<ContextState>> contexts_
      ABSL_GUARDED_BY(mutex_);
  std::map<ContextId, std::string> ended_ ABSL_GUARDED_BY(mutex_);  // why
  std::deque<ContextId> ended_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
