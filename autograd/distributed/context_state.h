// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/distributed/context_id.h"
#include "autograd/distributed/edges.h"
#include "autograd/distributed/other_step.h"
#include "autograd/distributed/pass.h"
#include "autograd/signature.h"
#include "autograd/variable.h"
#include "core/future.h"
#include "core/mutex.h"
#include "rpc/call_scope.h"

namespace baton::dist {

// The header that a context adds to a message: the context, and the edge that
// the message carries.
struct ScopeNote {
  ContextId context;
  EdgeId edge{};
  int values = 0;                  // number of values on the edge; 0: no edge
  autograd::Signature graph = {};  // signature of the values' graph at the
                                   // sender
  bool released = false;  // the sender has released its share of the context
  std::string why = "";   // the reason, unless the root ended the context
  static constexpr auto Fields() {
    return std::tuple{&ScopeNote::context,  &ScopeNote::edge,
                      &ScopeNote::values,   &ScopeNote::graph,
                      &ScopeNote::released, &ScopeNote::why};
  }
};
std::string Encode(const ScopeNote& note);
absl::StatusOr<ScopeNote> DecodeScopeNote(const std::string& bytes);

// One worker's share of a context: its ends of the edges, the gradients of its
// leaves, and the passes in progress. Owned by the Engine. Thread-safe.
class ContextState final : public rpc::CallScope {
 public:
  // `opened_by` is the worker whose call brought the context here, or the root
  // itself.
  ContextState(ContextId id, std::string opened_by);

  const ContextId& id() const { return id_; }
  const std::string& opened_by() const { return opened_by_; }

  struct Summary {
    std::chrono::milliseconds age{0};
    size_t gradients = 0;
    uint64_t gradient_bytes = 0;
    size_t sends = 0;  // edges that left this worker
    bool backward_runs = false;
  };
  Summary summary() const;
  const std::shared_ptr<NodeClaims>& claims() const { return claims_; }

  std::unique_ptr<rpc::Crossing> BeginSend(const rpc::WorkerInfo& to) override;
  std::string FinishSend(rpc::Crossing& crossing) override;
  absl::StatusOr<std::unique_ptr<rpc::Crossing>> BeginReceive(
      const rpc::WorkerInfo& from, const std::string& bytes) override;
  absl::Status FinishReceive(rpc::Crossing& crossing) override;

  // Returns null if this worker sent no such edge.
  std::shared_ptr<SendNode> FindSend(EdgeId edge) const;
  // Returns all edges that this worker sent.
  std::vector<std::shared_ptr<autograd::Node>> Sends() const;
  // Returns the workers that this one has sent to, and those that were added.
  std::set<std::string> KnownWorkers() const;

  // Adds to the gradient of `leaf`, or drops the gradient if the context was
  // released. Sums of several bf16 or f16 gradients are f32.
  void Accumulate(const Variable& leaf, const Gradient& grad);
  // Returns an undefined gradient if there is none.
  Gradient GradientOf(const Variable& leaf) const;
  // Returns the leaves and their gradients, in the order in which the leaves
  // got their first gradient.
  std::vector<std::pair<Variable, Gradient>> Gradients() const;

  // Returns the gradients, ordered likewise, and leaves none.
  std::vector<std::pair<Variable, Gradient>> TakeGradients();
  // Returns true on the first call for the root's move of gradients `number`.
  bool BeginMove(uint64_t number);
  // At the root: returns the number of a new move. FailedPrecondition while a
  // backward runs.
  absl::StatusOr<uint64_t> NumberMove();

  // Registers work that a step in this context does here besides the
  // optimizers' work: it uses gradients of values that no optimizer has, such
  // as rows at parameter servers. It runs once, in the next
  // dist::Optimizer::Step of the root or with parameters at this worker; it is
  // dropped with the context.
  void OnStep(OtherStep step);
  Future<void> StepOthers(const OtherStepSettings& settings);
  // Returns the square of the norm of all gradients that StepOthers would use.
  double SquareNormOfOthers() const;

  // Returns the pass `id`; the first call makes it with the options from
  // `make`. Passes before `oldest` are over at the root and fail here. Returns
  // FailedPrecondition for a pass that is over, and Aborted for a released
  // context.
  absl::StatusOr<std::shared_ptr<Pass>> OpenPass(
      PassId id, PassId oldest, const std::function<Pass::Options()>& make);
  // Returns NotFound unless `id` is in progress.
  absl::StatusOr<std::shared_ptr<Pass>> FindPass(PassId id) const;
  bool HasEnded(PassId id) const;
  // Removes pass `id`, whether or not it was marked, and refuses further
  // messages for it; returns null if it is not in progress.
  std::shared_ptr<Pass> EndPass(PassId id);
  // Like EndPass, and fails the pass with `why`.
  std::shared_ptr<Pass> AbortPass(PassId id, const absl::Status& why);
  // Adds a gradient of pass `id`; drops it unless the pass is in progress.
  void AccumulateFor(PassId id, const Variable& leaf, const Gradient& grad);

  // At the root: begins a backward; its number is in use until EndBackward.
  absl::StatusOr<PassId> BeginBackward();
  void EndBackward(PassId id);
  // Returns the oldest backward that has not ended; the last one if all have.
  PassId OldestBackward() const;

  // Registers a worker to be told of the context's end; Aborted once released.
  absl::Status AddWorker(const std::string& name);
  // Drops graph, gradients and passes; returns the workers that were sent to or
  // added. Receivers refuse later sends and report `why`.
  std::set<std::string> Release(const std::string& why);

 private:
  struct LeafGradient {
    Variable leaf;
    Gradient sum;
  };
  absl::Status OverLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return absl::AbortedError(id_.Over(why_));
  }
  bool HasEndedLocked(PassId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return id < oldest_ || ended_.count(id) > 0;
  }
  void AccumulateLocked(const Variable& leaf, const Gradient& grad)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ContextId id_;
  const std::string opened_by_;
  const std::chrono::steady_clock::time_point since_ =
      std::chrono::steady_clock::now();
  mutable Mutex mutex_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(mutex_);  // the reason of the release; empty
                                             // if the root released it
  uint64_t last_edge_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<EdgeId, std::shared_ptr<SendNode>> sends_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> known_workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<LeafGradient> gradients_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const void*, size_t> gradient_of_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<NodeClaims> claims_ = std::make_shared<NodeClaims>();
  std::vector<OtherStep> steps_ ABSL_GUARDED_BY(mutex_);
  std::map<PassId, std::shared_ptr<Pass>> passes_ ABSL_GUARDED_BY(mutex_);
  PassId oldest_ ABSL_GUARDED_BY(mutex_){};         // older passes are over,
  std::set<PassId> ended_ ABSL_GUARDED_BY(mutex_);  // and so are these
  uint64_t last_backward_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<PassId> backwards_ ABSL_GUARDED_BY(mutex_);
  // Number of the root's last move.
  uint64_t last_move_ ABSL_GUARDED_BY(mutex_) = 0;
  // Moves that this worker has heard of.
  std::set<uint64_t> moves_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::dist
