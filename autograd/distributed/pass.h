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
// Then it is fed: a gradient for each marked root, in any order. What is not
// marked is not waited for, so that unused results hang nothing.
//
// | state    | Mark                | Feed                  | Fail        |
// | -------- | ------------------- | --------------------- | ----------- |
// | unmarked | adds roots          | is kept for TakeEarly | ends it     |
// | marked   | adds roots          | begins feeding        | ends it     |
// | feeding  | FailedPrecondition  | runs what is ready    | ends it     |
// | failed   | gives the error     | gives the error       | no effect   |
//
// It has its nodes to itself from Mark on until none of them runs any more,
// whether it fails or not. Thread-safe.
class Pass final : public GradientCarrier,
                   public std::enable_shared_from_this<Pass> {
 public:
  struct Options {
    // Called from the threads that feed.
    autograd::GradSink sink;
    // Sends the gradients of `edge` back to its sender; ready when they are
    // there.
    std::function<Future<void>(const Pass& pass, const ReceiveNode& edge,
                               std::vector<Tensor> grads)>
        send;
    std::shared_ptr<NodeClaims> claims;
  };
  // What the root has decided.
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
  // Time left, at least one millisecond.
  std::chrono::milliseconds TimeLeft() const;

  // Asks for the gradients of `places`, before it is fed; the number of the
  // first of them. InvalidArgument where one requires no grad.
  absl::StatusOr<size_t> Want(const std::vector<Variable>& places);
  bool wants() const;
  // Of all places that were asked for, once it has finished; undefined where no
  // gradient came.
  std::vector<Tensor> TakeWanted();

  // Adds roots (those it has already are ignored) and returns the receive edges
  // that were not reached before. FailedPrecondition where another pass has
  // some of the nodes.
  absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> Mark(
      const Nodes& roots, const Terms& terms);
  // What came before it was marked, to be fed now.
  std::vector<Fed> TakeEarly();
  // Remembers a worker that was asked to take part, for an abort to follow;
  // whoever takes them tells them.
  void AddPeer(const std::string& worker);
  std::set<std::string> TakePeers();
  // True the first time.
  bool TakeFinish();

  // Runs what this makes ready on the calling thread. InvalidArgument for a
  // node that is not a marked root, or is fed twice.
  absl::Status Feed(const std::shared_ptr<autograd::Node>& root,
                    std::vector<Tensor> grads);
  // Ends the pass; what comes after it is dropped.
  void Fail(const absl::Status& status);

  // Ready when every reached node has run and what they sent has arrived, or,
  // with the first error, when no node runs any more.
  Future<void> Ended() const { return ended_.future(); }
  // The same, for a pass that is marked: ends the marking.
  Future<void> Finished();
  // "the gradient of edge 4 from bob", or what else it waits for.
  std::string WaitsFor() const;

  void Carry(const ReceiveNode& edge, std::vector<Tensor> grads) override;

 private:
  // Made when first asked for; null where the pass failed before.
  std::shared_ptr<autograd::GraphTask> Task();
  absl::Status Failure() const;
  autograd::GraphTask::Options TaskOptionsLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends if nothing is left to wait for.
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
  Nodes ends_ ABSL_GUARDED_BY(mutex_);  // received values that it reaches
  std::unordered_set<const autograd::Node*> unfed_ ABSL_GUARDED_BY(mutex_);
  std::vector<const autograd::Node*> taken_ ABSL_GUARDED_BY(mutex_);
  std::vector<autograd::Edge> wanted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> captured_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<autograd::GraphTask> task_ ABSL_GUARDED_BY(mutex_);
  bool graph_done_ ABSL_GUARDED_BY(mutex_) = false;
  int sends_ ABSL_GUARDED_BY(mutex_) = 0;  // under way
};

}  // namespace baton::dist
