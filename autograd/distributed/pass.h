// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_id.h"
#include "autograd/distributed/edges.h"
#include "autograd/engine.h"
#include "core/future.h"
#include "core/mutex.h"

namespace baton::dist {

// One worker's share of one backward. First it is marked: told which of its
// nodes the loss reaches, from this worker's roots or over edges from peers.
// Then it is fed: a gradient for each marked root, in any order. What is not
// marked is not waited for, so that unused results hang nothing.
//
// | state   | Mark                | Feed                | Fail        |
// | ------- | ------------------- | ------------------- | ----------- |
// | marking | adds roots          | begins feeding      | ends it     |
// | feeding | FailedPrecondition  | runs what is ready  | ends it     |
// | failed  | gives the error     | gives the error     | no effect   |
//
// Thread-safe.
class Pass final : public GradientCarrier,
                   public std::enable_shared_from_this<Pass> {
 public:
  struct Options {
    bool retain_graph = false;
    std::chrono::steady_clock::time_point deadline;
    // Called from the threads that feed.
    autograd::GradSink sink;
    // Sends the gradients of `edge` back to its sender; ready when they are
    // there.
    std::function<Future<void>(const Pass& pass, const ReceiveNode& edge,
                               std::vector<Tensor> grads)>
        send;
  };
  Pass(PassId id, Options options);
  ~Pass() override;

  PassId id() const { return id_; }
  bool retain_graph() const { return options_.retain_graph; }
  // Time left, at least one millisecond.
  std::chrono::milliseconds TimeLeft() const;

  // Adds roots (those it has already are ignored) and returns the receive edges
  // that were not reached before.
  absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> Mark(
      const std::vector<std::shared_ptr<autograd::Node>>& roots);
  // Remembers a worker that was asked to mark, for an abort to follow; whoever
  // takes them tells them.
  void AddPeer(const std::string& worker);
  std::set<std::string> TakePeers();

  // Runs what this makes ready on the calling thread. InvalidArgument for a
  // node that is not a marked root, or is fed twice.
  absl::Status Feed(const std::shared_ptr<autograd::Node>& root,
                    std::vector<Tensor> grads);
  // Ends the pass; what comes after it is dropped.
  void Fail(const absl::Status& status);

  // Ready when every reached node has run and what they sent has arrived, or
  // with the first error. Ends the marking.
  Future<void> Finished();
  // "the gradient of edge 4 from bob", or what else it waits for.
  std::string WaitsFor() const;

  void Carry(const ReceiveNode& edge, std::vector<Tensor> grads) override;

 private:
  std::shared_ptr<autograd::GraphTask> TaskLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const absl::Status& status);

  const PassId id_;
  const Options options_;
  const Promise<void> finished_;
  mutable Mutex mutex_;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<autograd::Node>> roots_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<const autograd::Node*> unfed_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<const autograd::Node*> visited_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<autograd::GraphTask> task_ ABSL_GUARDED_BY(mutex_);
  // Sends under way, plus one until the graph has run.
  int unsettled_ ABSL_GUARDED_BY(mutex_) = 1;
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::dist
