// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/context_state.h"

#include <algorithm>

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
  std::shared_ptr<SendNode> node;
  if (!sent.values().empty()) {
    {
      MutexLock lock(mutex_);
      note.edge = EdgeId{++last_edge_};
    }
    node = std::make_shared<SendNode>(note.edge, sent.to(), sent.values());
    note.values = static_cast<int>(sent.values().size());
    note.graph = autograd::SignatureOf(*node);
  }
  MutexLock lock(mutex_);
  note.released = released_;
  note.why = why_;
  if (node != nullptr && !released_) sends_.emplace(note.edge, std::move(node));
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
    node = std::make_shared<ReceiveNode>(id_, note.edge, from.name, note.values,
                                         note.graph);
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

std::vector<std::shared_ptr<autograd::Node>> ContextState::Sends() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<autograd::Node>> all;
  for (const auto& [id, node] : sends_) all.push_back(node);
  return all;
}

std::set<std::string> ContextState::KnownWorkers() const {
  MutexLock lock(mutex_);
  return known_workers_;
}

void ContextState::Accumulate(const Variable& leaf, const Gradient& grad) {
  MutexLock lock(mutex_);
  AccumulateLocked(leaf, grad);
}

void ContextState::AccumulateFor(PassId id, const Variable& leaf,
                                 const Gradient& grad) {
  MutexLock lock(mutex_);
  if (passes_.count(id) > 0) AccumulateLocked(leaf, grad);
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

std::vector<std::pair<Variable, Gradient>> ContextState::TakeGradients() {
  std::vector<std::pair<Variable, Gradient>> all;
  MutexLock lock(mutex_);
  for (LeafGradient& gradient : gradients_) {
    all.emplace_back(std::move(gradient.leaf), std::move(gradient.sum));
  }
  gradients_.clear();
  gradient_of_.clear();
  return all;
}

bool ContextState::BeginMove(uint64_t number) {
  MutexLock lock(mutex_);
  return moves_.insert(number).second;
}

absl::StatusOr<uint64_t> ContextState::NumberMove() {
  MutexLock lock(mutex_);
  if (released_) return OverLocked();
  if (!backwards_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a backward of ", id_.ToString(), " runs: wait for it"));
  }
  return ++last_move_;
}

absl::StatusOr<std::shared_ptr<Pass>> ContextState::OpenPass(
    PassId id, PassId oldest, const std::function<Pass::Options()>& make) {
  std::shared_ptr<Pass> pass;
  std::vector<std::shared_ptr<Pass>> over;
  {
    MutexLock lock(mutex_);
    if (released_) return OverLocked();
    oldest_ = std::max(oldest_, oldest);
    ended_.erase(ended_.begin(), ended_.lower_bound(oldest_));
    while (!passes_.empty() && passes_.begin()->first < oldest_) {
      over.push_back(std::move(passes_.begin()->second));
      passes_.erase(passes_.begin());
    }
    if (!HasEndedLocked(id)) {
      auto& found = passes_[id];
      if (found == nullptr) found = std::make_shared<Pass>(id, make());
      pass = found;
    }
  }
  for (const auto& old : over)
    old->Fail(absl::CancelledError("its root has ended it"));
  if (pass != nullptr) return pass;
  return absl::FailedPreconditionError(
      absl::StrCat("this backward of ", id_.ToString(), " is over"));
}

absl::StatusOr<std::shared_ptr<Pass>> ContextState::FindPass(PassId id) const {
  MutexLock lock(mutex_);
  const auto found = passes_.find(id);
  if (found != passes_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("no such backward of ", id_.ToString()));
}

bool ContextState::HasEnded(PassId id) const {
  MutexLock lock(mutex_);
  return HasEndedLocked(id);
}

std::shared_ptr<Pass> ContextState::EndPass(PassId id) {
  MutexLock lock(mutex_);
  if (!HasEndedLocked(id)) ended_.insert(id);
  const auto found = passes_.find(id);
  if (found == passes_.end()) return nullptr;
  std::shared_ptr<Pass> pass = std::move(found->second);
  passes_.erase(found);
  return pass;
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
  const PassId id{++last_backward_};
  backwards_.insert(id);
  return id;
}

void ContextState::EndBackward(PassId id) {
  EndPass(id);
  MutexLock lock(mutex_);
  backwards_.erase(id);
}

PassId ContextState::OldestBackward() const {
  MutexLock lock(mutex_);
  return backwards_.empty() ? PassId{last_backward_} : *backwards_.begin();
}

absl::Status ContextState::AddWorker(const std::string& name) {
  MutexLock lock(mutex_);
  if (released_) return OverLocked();
  known_workers_.insert(name);
  return absl::OkStatus();
}

void ContextState::OnStep(OtherStep step) {
  const MutexLock lock(mutex_);
  if (!released_) steps_.push_back(std::move(step));
}

Future<void> ContextState::StepOthers(const OtherStepSettings& settings) {
  std::vector<OtherStep> steps;
  {
    const MutexLock lock(mutex_);
    steps.swap(steps_);
  }
  std::vector<Future<void>> stepping;
  for (const OtherStep& each : steps) stepping.push_back(each.step(settings));
  return WaitAll(stepping);
}

double ContextState::SquareNormOfOthers() const {
  std::vector<OtherStep> steps;
  {
    const MutexLock lock(mutex_);
    steps = steps_;
  }
  double sum = 0;
  for (const OtherStep& each : steps) sum += each.square_norm();
  return sum;
}

std::set<std::string> ContextState::Release(const std::string& why) {
  // Destroyed after the lock is released, because nodes may own a lot.
  std::map<EdgeId, std::shared_ptr<SendNode>> sends;
  std::vector<LeafGradient> gradients;
  std::map<PassId, std::shared_ptr<Pass>> passes;
  std::vector<OtherStep> steps;
  std::set<std::string> workers;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(released_, true)) why_ = why;
    sends.swap(sends_);
    gradients.swap(gradients_);
    gradient_of_.clear();
    workers.swap(known_workers_);
    passes.swap(passes_);
    steps.swap(steps_);
  }
  for (const auto& [number, pass] : passes)
    pass->Fail(absl::AbortedError(id_.Over(why)));
  return workers;
}

ContextState::Summary ContextState::summary() const {
  MutexLock lock(mutex_);
  Summary summary{.age = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::steady_clock::now() - since_),
                  .gradients = gradients_.size(),
                  .sends = sends_.size(),
                  .backward_runs = !passes_.empty()};
  for (const LeafGradient& gradient : gradients_) {
    if (gradient.sum.defined()) summary.gradient_bytes += gradient.sum.nbytes();
  }
  return summary;
}

}  // namespace baton::dist
