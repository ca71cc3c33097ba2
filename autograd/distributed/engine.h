// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "autograd/distributed/peers.h"
#include "autograd/signature.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/lru_cache.h"
#include "core/mutex.h"
#include "core/newest_map.h"
#include "rpc/call_scope.h"
#include "rpc/object_lock.h"
#include "rpc/view.h"
#include "rpc/worker.h"

namespace baton::dist {

// How a backward determines what takes part in it.
enum class Markings {
  // Exactly what the loss depends on takes part. The backward asks the workers
  // for it, once for each form of the graph.
  kExact,
  // Everything takes part: the backward assumes that the loss depends on every
  // value that required grad in a call of the context. No worker is asked, and
  // no signatures are compared. If the loss does not depend on a value, the
  // backward waits until the deadline, whose error names that value.
  kFast,
};

using LeafTaker =
    std::function<bool(const Variable& leaf, const Gradient& gradient)>;

struct BackwardOptions {
  bool retain_graph = false;  // keep the graph for another backward
  std::chrono::milliseconds timeout = kDefaultAwait;
  Markings markings = Markings::kExact;
  // Called with the gradient of each leaf at the root's worker once it is final
  // in this backward, on the thread that runs the node, one call at a time. If
  // it returns true it has taken the gradient, which then does not go to the
  // context. Not called after the backward is over.
  LeafTaker take = nullptr;
  // Gradients that can be differentiated again are not supported:
  // Unimplemented.
  bool create_graph = false;
};

// A place whose gradient is requested: a value here, or parameters elsewhere.
struct GradientPlace {
  Variable here = {};
  std::string worker = "";
  RRef<ParameterList> there = {};  // at `worker`
};

// Distributed autograd at one worker: its contexts, and its part in every
// backward that involves it. A backward has two phases, neither of which
// occupies a thread while it waits:
//
//   mark    The root searches its graph from the loss. It sends MARK with the
//           edges to each worker whose values it reaches; that worker searches
//           on from them, marks further workers, and answers when those have.
//           So when the root has its answers, every reached node is known.
//   run     The root feeds its graph. Where a graph ends at a received value,
//           the gradient goes to its sender, whose graph it feeds. The root
//           sends FINISH to each participant and is done when all are.
//
// The root caches the markings used last by the signature of the graph. Each
// received value brings the signature of the sender's graph, which includes
// those of what the sender received. Hence the root knows without a message
// whether the whole graph has a form that it has marked before. Then it sends
// no MARK; FINISH names what takes part. A gradient that arrives before FINISH
// waits for it.
//
// Backwards of one context may run concurrently if they share no node at any
// worker; a parameter counts as a node. Otherwise the later one fails with
// FailedPrecondition.
//
// The first error at any worker fails the backward and aborts it at every
// participant. Release ends a context on all workers. The ids of ended contexts
// are kept for a while (the newest 65536), so that a late call is refused
// instead of reviving its context. A context also ends if its root is lost, and
// for no other reason: if a worker hears that the root is lost, or the opener,
// which would have passed on the root's Release, it asks the root, and keeps
// the context if the root answers. Thread-safe.
class Engine final : public rpc::CallScopeFactory,
                     public std::enable_shared_from_this<Engine> {
 public:
  // `executor` runs the parts of backwards; it must outlive the engine.
  Engine(rpc::WorkerInfo self, Executor* executor,
         std::shared_ptr<Peers> peers);
  ~Engine() override;

  absl::StatusOr<std::shared_ptr<rpc::CallScope>> Open(
      const rpc::WorkerInfo& from, const std::string& bytes) override;

  // Makes a new context with its root here.
  std::shared_ptr<ContextState> NewContext();
  // Ends the context everywhere; done when every worker that could be reached
  // knows.
  Future<void> Release(const ContextId& context);

  // Adds the gradients of the roots, weighted by `grad_outputs` (undefined or
  // missing means ones, for one-element roots), to the context, at the leaves'
  // workers. After an error the context's gradients may be incomplete; no node
  // runs any more, except at workers that did not confirm this within a second.
  // Returns InvalidArgument for bad roots, FailedPrecondition if another
  // backward of the context has some of the nodes, and DeadlineExceeded, which
  // names what was waited for.
  Future<void> Backward(const std::shared_ptr<ContextState>& context,
                        const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options);
  // Returns the gradients of `places` instead: for each place those of its
  // values, in order; undefined if there is none. The context stays unchanged.
  Future<std::vector<Tensor>> Gradients(
      const std::shared_ptr<ContextState>& context,
      const std::vector<Variable>& roots,
      const std::vector<GradientPlace>& places,
      const std::vector<Tensor>& grad_outputs, const BackwardOptions& options);
  // Makes every worker move the context's gradients into their leaves' grad().
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
  // Handles a broken connection; the worker may still be alive.
  void OnWorkerLost(const std::string& worker);

  // The lock of all parameters here: backwards may share it, and a step of an
  // optimizer excludes them.
  const std::shared_ptr<rpc::ObjectLock>& parameters() const {
    return parameters_;
  }

  size_t num_contexts() const;
  std::vector<ContextId> contexts() const;
  // Returns the table "contexts" for Agent::AddView.
  rpc::View View() const;

 private:
  class Run;

  using Received = std::vector<std::shared_ptr<ReceiveNode>>;

  absl::StatusOr<std::shared_ptr<ContextState>> Find(const ContextId& id) const;
  // Makes the context if it is new here; Aborted if it has ended.
  absl::StatusOr<std::shared_ptr<ContextState>> FindOrMake(
      const ContextId& id, const std::string& opened_by);
  // `places` is null for a backward.
  Future<std::vector<Tensor>> StartRun(
      const std::shared_ptr<ContextState>& context,
      const std::vector<Variable>& roots,
      const std::vector<GradientPlace>* places,
      const std::vector<Tensor>& grad_outputs, const BackwardOptions& options);
  std::shared_ptr<ContextState> MakeLocked(const ContextId& id,
                                           const std::string& opened_by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `take` is BackwardOptions::take.
  absl::StatusOr<std::shared_ptr<Pass>> OpenPass(
      const std::shared_ptr<ContextState>& context, PassId id,
      PassId oldest = PassId{}, const LeafTaker& take = nullptr);
  // Marks a pass and feeds what came earlier; returns the edges to other
  // workers that it reaches.
  absl::StatusOr<Received> Mark(const ContextId& context,
                                const std::shared_ptr<Pass>& pass,
                                const Pass::Nodes& roots,
                                const PassRequest& request);
  // Forwards the marking to other workers; returns what takes part from here
  // on.
  Future<Marking> MarkOnwards(const PassRequest& request,
                              const std::shared_ptr<Pass>& pass,
                              const Received& reached);
  absl::StatusOr<Pass::Nodes> SendsOf(const ContextState& context,
                                      const std::vector<uint64_t>& edges) const;
  // Finishes without marking, at a worker that takes part in `pass`.
  absl::StatusOr<Future<std::vector<Tensor>>> Finish(
      const std::string& from, const FinishRequest& request);
  // Done when the pass and `others` have finished. Returns the requested
  // gradients, unless the pass keeps them, and itself, for the root.
  static Future<std::vector<Tensor>> AnswerOf(
      const std::shared_ptr<ContextState>& context,
      const std::shared_ptr<Pass>& pass, const Future<void>& others,
      bool keeps);
  // Returns the workers that this one exchanged values of the context with, by
  // sending or by receiving them.
  std::set<std::string> Neighbours(const ContextState& context,
                                   const Received& reached) const;
  // Asks `workers` to finish everything that they have, too.
  Future<void> FinishAll(const std::set<std::string>& workers,
                         const FinishRequest& request, Pass& pass);
  // Runs `task` on the executor while no optimizer steps.
  void UseParameters(const char* method, Task task);
  // Runs on the executor what the gradients make ready.
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
  // Ends the context here, and then at the workers that this one sent to,
  // except one.
  Future<void> End(const ContextId& id, const std::string& except,
                   const std::string& why);

  const rpc::WorkerInfo self_;
  Executor* const executor_;
  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<rpc::ObjectLock> parameters_;
  LruCache<autograd::Signature, Marking> markings_{256};
  mutable Mutex mutex_;
  uint64_t last_context_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ContextId, std::shared_ptr<ContextState>> contexts_
      ABSL_GUARDED_BY(mutex_);
  NewestMap<ContextId, std::string> ended_ ABSL_GUARDED_BY(mutex_){65'536};
};

}  // namespace baton::dist
