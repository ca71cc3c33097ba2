// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_id.h"
#include "autograd/distributed/edges.h"
#include "autograd/distributed/node_claims.h"
#include "autograd/engine.h"
#include "core/future.h"
#include "core/mutex.h"

namespace baton::dist {

// One worker's share of one backward. First it is marked: told which of its
// nodes the loss reaches, from this worker's roots or over edges from peers.
// Then it is fed: a gradient for each marked root, in any order. It never waits
// for anything unmarked, so unused results cannot block it.
//
// | state    | Mark                | Feed                  | Fail        |
// | -------- | ------------------- | --------------------- | ----------- |
// | unmarked | adds roots          | is kept for TakeEarly | ends it     |
// | marked   | adds roots          | begins feeding        | ends it     |
// | feeding  | FailedPrecondition  | runs what is ready    | ends it     |
// | failed   | returns the error   | returns the error     | no effect   |
//
// It owns its nodes exclusively from Mark until none of them runs any more,
// whether it fails or not. Thread-safe.
class Pass final : public GradientCarrier,
                   public std::enable_shared_from_this<Pass> {
 public:
  struct Options {
    // Called on the threads that feed the pass.
    autograd::GradSink sink;
    // Sends the gradients of `edge` back to its sender; done when they have
    // arrived.
    std::function<Future<void>(const Pass& pass, const ReceiveNode& edge,
                               std::vector<Tensor> grads)>
        send;
    std::shared_ptr<NodeClaims> claims;
  };
  // The root's settings.
  struct Terms {
    bool retain_graph = false;
    bool only_wanted = false;  // nothing goes to the sink
    std::chrono::steady_clock::time_point deadline;
  };
  struct Fed {
    std::shared_ptr<autograd::Node> root;
    std::vector<Tensor> grads;
  };
  using Nodes = std::vector<std::shared_ptr<autograd::Node>>;

  Pass(PassId id, Options options);
  ~Pass() override;

  PassId id() const { return id_; }
  Terms terms() const;
  // Returns the time left, at least one millisecond.
  std::chrono::milliseconds TimeLeft() const;

  // Requests the gradients of `places`; call it before the pass is fed. Returns
  // the index of the first of them, or InvalidArgument if a place does not
  // require grad.
  absl::StatusOr<size_t> Want(const std::vector<Variable>& places);
  bool wants() const;
  // Returns the gradients of all requested places, once the pass has finished;
  // undefined if there is none.
  std::vector<Tensor> TakeWanted();

  // Adds roots (repeated ones are ignored) and returns the receive edges that
  // were not reached before. Returns FailedPrecondition if another pass has
  // some of the nodes.
  absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> Mark(
      const Nodes& roots, const Terms& terms);
  // Returns what arrived before the pass was marked, to be fed now.
  std::vector<Fed> TakeEarly();
  // Remembers a worker that was asked to take part, so that an abort can be
  // sent to it. The caller of TakePeers must tell them.
  void AddPeer(const std::string& worker);
  std::set<std::string> TakePeers();
  // Returns true the first time.
  bool TakeFinish();

  // Runs the nodes that become ready on the calling thread. Returns
  // InvalidArgument for a node that is not a marked root, or is fed twice.
  absl::Status Feed(const std::shared_ptr<autograd::Node>& root,
                    std::vector<Tensor> grads);
  // Ends the pass; later gradients are dropped.
  void Fail(const absl::Status& status);

  // Done when every reached node has run and the gradients that they sent have
  // arrived, or, with the first error, when no node runs any more.
  Future<void> Ended() const { return ended_.future(); }
  // Like Ended, for a pass that is completely marked.
  Future<void> Finished();
  // Says what the pass waits for, such as "the gradient of edge 4 from bob".
  std::string WaitsFor() const;

  void Carry(const ReceiveNode& edge, std::vector<Tensor> grads) override;

 private:
  // Makes the task on first use; returns null if the pass has failed before.
  std::shared_ptr<autograd::GraphTask> Task();
  absl::Status Failure() const;
  autograd::GraphTask::Options TaskOptionsLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the pass if there is nothing left to wait for.
  void Settle();
  void GiveBackNodes();

  const PassId id_;
  const Options options_;
  const Promise<void> ended_;
  mutable Mutex mutex_;
  bool marked_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  Terms terms_ ABSL_GUARDED_BY(mutex_);
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<Fed> early_ ABSL_GUARDED_BY(mutex_);
  Nodes roots_ ABSL_GUARDED_BY(mutex_);
  Nodes ends_ ABSL_GUARDED_BY(mutex_);  // the received values that it reaches
  std::unordered_set<const autograd::Node*> unfed_ ABSL_GUARDED_BY(mutex_);
  std::vector<const autograd::Node*> taken_ ABSL_GUARDED_BY(mutex_);
  std::vector<autograd::Edge> wanted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> captured_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<autograd::GraphTask> task_ ABSL_GUARDED_BY(mutex_);
  bool graph_done_ ABSL_GUARDED_BY(mutex_) = false;
  int sends_ ABSL_GUARDED_BY(mutex_) = 0;  // number in progress
};

}  // namespace baton::dist
