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
// is refused instead of bringing its context back to life. A context whose root
// or opener is lost ends as well. Thread-safe.
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
  Future<void> Release(const std::shared_ptr<ContextState>& context);

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
  Future<void> OnFinish(const ContextId& context, PassId pass);
  std::string OnAbort(const ContextId& context, PassId pass,
                      const absl::Status& why);
  Future<void> OnRelease(const std::string& from, const ContextId& context);
  // `incarnation` 0: of whatever incarnation.
  void OnWorkerLost(const std::string& worker, uint64_t incarnation = 0);

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
  Future<void> SendGradient(const ContextId& context, const Pass& pass,
                            const ReceiveNode& edge,
                            const std::vector<Tensor>& grads);
  Future<void> EndLocally(const std::shared_ptr<ContextState>& context,
                          const std::string& except);
  void BuryLocked(const ContextId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const rpc::WorkerInfo self_;
  Executor* const executor_;
  const std::shared_ptr<Peers> peers_;
  mutable Mutex mutex_;
  uint64_t last_context_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<ContextId, std::shared_ptr<ContextState>> contexts_
      ABSL_GUARDED_BY(mutex_);
  std::set<ContextId> ended_ ABSL_GUARDED_BY(mutex_);
  std::deque<ContextId> ended_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
