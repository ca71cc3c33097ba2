// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_state.h"
#include "autograd/distributed/peers.h"
#include "core/executor.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/call_scope.h"
#include "rpc/object_lock.h"
#include "rpc/view.h"
#include "rpc/worker.h"

namespace baton::dist {

struct BackwardOptions {
  bool retain_graph = false;  // keep the graph for one more backward
  std::chrono::milliseconds timeout = kDefaultAwait;
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
  // After an error the context's gradients may be incomplete.
  // InvalidArgument for bad roots, FailedPrecondition while another backward of
  // the context runs, DeadlineExceeded naming what was waited for.
  Future<void> Backward(const std::shared_ptr<ContextState>& context,
                        const std::vector<Variable>& roots,
                        const std::vector<Tensor>& grad_outputs,
                        const BackwardOptions& options);

  Future<std::vector<std::string>> OnMark(const std::string& from,
                                          const MarkRequest& request);
  absl::Status OnGradient(const std::string& from, GradientMessage message);
  Future<void> OnFinish(const ContextId& context, PassId id);
  std::string OnAbort(const ContextId& context, PassId pass,
                      const absl::Status& why);
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

  absl::StatusOr<std::shared_ptr<ContextState>> Find(const ContextId& id) const;
  Pass::Options PassOptions(const std::shared_ptr<ContextState>& context,
                            PassId pass, bool retain_graph,
                            std::chrono::milliseconds time_left);
  // Sends on a wave of marks; the workers that take part from here on.
  Future<std::vector<std::string>> MarkOnwards(
      const ContextId& context, const std::shared_ptr<Pass>& pass,
      const std::vector<std::shared_ptr<ReceiveNode>>& reached);
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
  mutable Mutex mutex_;
  uint64_t last_context_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ContextId, std::shared_ptr<ContextState>> contexts_
      ABSL_GUARDED_BY(mutex_);
  std::map<ContextId, std::string> ended_ ABSL_GUARDED_BY(mutex_);  // why
  std::deque<ContextId> ended_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
