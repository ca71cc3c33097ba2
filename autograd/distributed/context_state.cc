// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/context_state.h"

#include "absl/strings/str_cat.h"
#include "autograd/accumulate.h"
#include "rpc/codec.h"

namespace baton::dist {

std::string Encode(const ScopeNote& note) {
  rpc::Encoder encoder;
  encoder.Put(note);
  return std::move(encoder.bytes());
}

absl::StatusOr<ScopeNote> DecodeScopeNote(const std::string& bytes) {
  rpc::Decoder decoder(bytes);
  ScopeNote note = decoder.Get<ScopeNote>();
  RETURN_IF_ERROR(decoder.Finish());
  if (note.values < 0 || note.values > (1 << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", note.values, " values"));
  }
  return note;
}

ContextState::ContextState(ContextId id, std::string opened_by)
    : id_(std::move(id)), opened_by_(std::move(opened_by)) {}

std::unique_ptr<rpc::Crossing> ContextState::BeginSend(
    const rpc::WorkerInfo& to) {
  MutexLock lock(mutex_);
  if (!released_) known_workers_.insert(to.name);
  return std::make_unique<SendCrossing>(to.name);
}

std::string ContextState::FinishSend(rpc::Crossing& crossing) {
  const auto& sent = static_cast<const SendCrossing&>(crossing);
  ScopeNote note{.context = id_};
  MutexLock lock(mutex_);
  note.released = released_;
  note.why = why_;
  if (!sent.values().empty() && !released_) {
    note.edge = EdgeId{++last_edge_};
    note.values = static_cast<int>(sent.values().size());
    sends_.emplace(note.edge, std::make_shared<SendNode>(note.edge, sent.to(),
                                                         sent.values()));
  }
  return Encode(note);
}

absl::StatusOr<std::unique_ptr<rpc::Crossing>> ContextState::BeginReceive(
    const rpc::WorkerInfo& from, const std::string& bytes) {
  ASSIGN_OR_RETURN(ScopeNote note, DecodeScopeNote(bytes));
  if (note.context != id_) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", from.name, " answered a call of ",
                     id_.ToString(), " in ", note.context.ToString()));
  }
  if (note.released) return absl::AbortedError(id_.Over(note.why));
  {
    MutexLock lock(mutex_);
    if (released_) return OverLocked();
  }
  std::shared_ptr<ReceiveNode> node;
  if (note.values > 0) {
    node =
        std::make_shared<ReceiveNode>(id_, note.edge, from.name, note.values);
  }
  return std::make_unique<ReceiveCrossing>(std::move(node));
}

absl::Status ContextState::FinishReceive(rpc::Crossing&) {
  return absl::OkStatus();
}

std::shared_ptr<SendNode> ContextState::FindSend(EdgeId edge) const {
  MutexLock lock(mutex_);
  auto found = sends_.find(edge);
  return found == sends_.end() ? nullptr : found->second;
}

void ContextState::Accumulate(const Variable& leaf, const Gradient& grad) {
  MutexLock lock(mutex_);
  AccumulateLocked(leaf, grad);
}

void ContextState::AccumulateFor(PassId id, const Variable& leaf,
                                 const Gradient& grad) {
  MutexLock lock(mutex_);
  if (pass_ == nullptr || pass_->id() != id) return;
  AccumulateLocked(leaf, grad);
}

void ContextState::AccumulateLocked(const Variable& leaf,
                                    const Gradient& grad) {
  if (released_) return;
  auto [found, is_new] = gradient_of_.emplace(leaf.id(), gradients_.size());
  if (is_new) gradients_.push_back({leaf, {}});
  autograd::AddGradient(gradients_[found->second].sum, grad);
}

Gradient ContextState::GradientOf(const Variable& leaf) const {
  MutexLock lock(mutex_);
  auto found = gradient_of_.find(leaf.id());
  return found == gradient_of_.end() ? Gradient()
                                     : gradients_[found->second].sum;
}

std::vector<std::pair<Variable, Gradient>> ContextState::Gradients() const {
  MutexLock lock(mutex_);
  std::vector<std::pair<Variable, Gradient>> all;
  for (const LeafGradient& gradient : gradients_) {
    all.emplace_back(gradient.leaf, gradient.sum);
  }
  return all;
}

void ContextState::ClearGradients() {
  MutexLock lock(mutex_);
  gradients_.clear();
  gradient_of_.clear();
}

absl::StatusOr<std::shared_ptr<Pass>> ContextState::OpenPass(
    PassId id, Pass::Options options) {
  std::shared_ptr<Pass> pass;
  std::shared_ptr<Pass> old;
  {
    MutexLock lock(mutex_);
    if (released_) return OverLocked();
    if (pass_ != nullptr && pass_->id() == id) return pass_;
    if (id <= ended_pass_ || (pass_ != nullptr && id < pass_->id())) {
      return absl::FailedPreconditionError(
          absl::StrCat("this backward of ", id_.ToString(), " is over"));
    }
    old = std::move(pass_);
    pass_ = pass = std::make_shared<Pass>(id, std::move(options));
  }
  if (old != nullptr) old->Fail(absl::CancelledError("a newer backward began"));
  return pass;
}

absl::StatusOr<std::shared_ptr<Pass>> ContextState::FindPass(PassId id) const {
  MutexLock lock(mutex_);
  if (pass_ == nullptr || pass_->id() != id) {
    return absl::NotFoundError(
        absl::StrCat("no such backward of ", id_.ToString()));
  }
  return pass_;
}

std::shared_ptr<Pass> ContextState::EndPass(PassId id) {
  MutexLock lock(mutex_);
  ended_pass_ = std::max(ended_pass_, id);
  if (pass_ == nullptr || pass_->id() != id) return nullptr;
  return std::exchange(pass_, nullptr);
}

std::shared_ptr<Pass> ContextState::AbortPass(PassId id,
                                              const absl::Status& why) {
  std::shared_ptr<Pass> pass = EndPass(id);
  if (pass != nullptr) pass->Fail(why);
  return pass;
}

absl::StatusOr<PassId> ContextState::BeginBackward() {
  MutexLock lock(mutex_);
  if (released_) return OverLocked();
  if (backward_runs_) {
    return absl::FailedPreconditionError(
        absl::StrCat("a backward of ", id_.ToString(),
                     " runs already; wait for it or use another context"));
  }
  backward_runs_ = true;
  return PassId{++last_backward_};
}

void ContextState::EndBackward(PassId id) {
  EndPass(id);
  MutexLock lock(mutex_);
  backward_runs_ = false;
}

absl::Status ContextState::AddWorker(const std::string& name) {
  MutexLock lock(mutex_);
  if (released_) return OverLocked();
  known_workers_.insert(name);
  return absl::OkStatus();
}

std::set<std::string> ContextState::Release(const std::string& why) {
  // Destroyed without the lock: nodes may own a lot.
  std::map<EdgeId, std::shared_ptr<SendNode>> sends;
  std::vector<LeafGradient> gradients;
  std::shared_ptr<Pass> pass;
  std::set<std::string> workers;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(released_, true)) why_ = why;
    sends.swap(sends_);
    gradients.swap(gradients_);
    gradient_of_.clear();
    workers.swap(known_workers_);
    pass.swap(pass_);
  }
  if (pass != nullptr) pass->Fail(absl::AbortedError(id_.Over(why)));
  return workers;
}

ContextState::Summary ContextState::summary() const {
  MutexLock lock(mutex_);
  Summary summary{.age = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::steady_clock::now() - since_),
                  .gradients = gradients_.size(),
                  .sends = sends_.size(),
                  .backward_runs = pass_ != nullptr};
  for (const LeafGradient& gradient : gradients_) {
    if (gradient.sum.defined()) summary.gradient_bytes += gradient.sum.nbytes();
  }
  return summary;
}

}  // namespace baton::dist
