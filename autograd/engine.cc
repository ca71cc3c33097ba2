// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/engine.h"

#include <functional>
#include <queue>
#include <unordered_set>
#include <utility>

#include "autograd/accumulate.h"
#include "core/mutex.h"

namespace baton::autograd {
namespace {

void AddToLeaf(const Variable& leaf, const Gradient& grad) {
  Variable(leaf).AccumulateGrad(grad);
}

using Tensors = std::vector<Tensor>;
using Gradients = std::vector<Gradient>;

}  // namespace

// The thread that sets running_ owns the unguarded members until it clears it;
// mutex_ orders one owner before the next.
class GraphTask::Work final
    : public std::enable_shared_from_this<GraphTask::Work> {
 public:
  Work(const std::vector<std::shared_ptr<Node>>& roots, Options options)
      : options_(std::move(options)),
        plan_(roots, options_.scope),
        left_(plan_.nodes().size()),
        finished_(left_ == 0) {}
  ~Work();

  absl::Status Feed(const std::shared_ptr<Node>& root, Tensors grads);
  void Fail(absl::Status status);
  void OnDone(absl::AnyInvocable<void(absl::Status)> done);
  bool finished() const {
    MutexLock lock(mutex_);
    return finished_;
  }

 private:
  struct Fed {
    int to;  // index in the plan; -1: not needed
    Tensors grads;
  };
  // The smallest runs first: accumulators, then nodes in the order of the plan.
  using Key = std::pair<bool, int>;

  absl::Status AcceptLocked(const Node* root, size_t grads) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Drive();
  absl::Status Finish(const absl::Status& status);
  void Deliver(Fed fed);
  void Arrived(int to);
  void Run(PlannedNode& planned);
  Gradients RunNode(const PlannedNode& planned, const Tensors& grads);
  void LeaveAt(const Accumulator& leaf, const Gradient& grad) const;
  bool MayPostpone(const Variable& leaf) const;
  GradientSum& SumOf(const PlannedNode::Flow& flow) {
    return plan_.nodes()[static_cast<size_t>(flow.to)]
        .sums[static_cast<size_t>(flow.output)];
  }
  void Capture(const PlannedNode& planned, const Tensors& grads) const;
  void FlowOn(const PlannedNode& planned, Gradients results);

  const Options options_;
  GraphPlan plan_;  // its roots() never change
  size_t left_ = 0;
  std::priority_queue<Key, std::vector<Key>, std::greater<Key>> ready_;

  mutable Mutex mutex_;
  std::vector<Fed> inbox_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<const Node*> fed_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::AnyInvocable<void(absl::Status)>> callbacks_
      ABSL_GUARDED_BY(mutex_);
};

GraphTask::Work::~Work() {
  for (auto& done : callbacks_)
    done(absl::CancelledError("the backward pass was dropped unfinished"));
}

absl::Status GraphTask::Work::AcceptLocked(const Node* root,
                                           size_t grads) const {
  const auto found = plan_.roots().find(root);
  if (found == plan_.roots().end())
    return absl::InvalidArgumentError("not a root of this backward pass");
  if (fed_.count(root) > 0)
    return absl::InvalidArgumentError("a root was fed a second time");
  if (!error_.ok()) return error_;
  const auto outputs = static_cast<size_t>(root->num_outputs());
  if (grads != outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("backward of ", root->name(), ": fed ", grads,
                     " gradients for ", outputs, " outputs"));
  }
  return absl::OkStatus();
}

absl::Status GraphTask::Work::Feed(const std::shared_ptr<Node>& root,
                                   Tensors grads) {
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(AcceptLocked(root.get(), grads.size()));
    fed_.insert(root.get());
    inbox_.push_back({plan_.roots().at(root.get()), std::move(grads)});
    if (running_ || finished_) return absl::OkStatus();
    running_ = true;
  }
  return Drive();
}

void GraphTask::Work::Fail(absl::Status status) {
  if (status.ok()) return;
  {
    MutexLock lock(mutex_);
    if (finished_ || !error_.ok()) return;
    error_ = std::move(status);
    if (running_) return;  // the running thread finishes
    running_ = true;
  }
  Drive().IgnoreError();  // it returns error_
}

void GraphTask::Work::OnDone(absl::AnyInvocable<void(absl::Status)> done) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (!finished_) {
      callbacks_.push_back(std::move(done));
      return;
    }
    status = error_;
  }
  done(status);
}

// Runs as the owner until nothing is ready.
absl::Status GraphTask::Work::Drive() {
  const auto keep = shared_from_this();  // callbacks may drop the last handle
  for (;;) {
    std::vector<Fed> fed;
    absl::Status error;
    {
      MutexLock lock(mutex_);
      error = error_;
      fed.swap(inbox_);
      if (error.ok() && left_ > 0 && fed.empty() && ready_.empty()) {
        running_ = false;
        return absl::OkStatus();
      }
    }
    if (!error.ok() || left_ == 0) return Finish(error);
    const absl::Status status = CatchErrors([&] {
      for (Fed& one : fed) Deliver(std::move(one));
      if (ready_.empty()) return;
      const int next = ready_.top().second;
      ready_.pop();
      Run(plan_.nodes()[static_cast<size_t>(next)]);
      --left_;
    });
    if (status.ok()) continue;
    MutexLock lock(mutex_);
    if (error_.ok()) error_ = status;
  }
}

absl::Status GraphTask::Work::Finish(const absl::Status& status) {
  std::vector<PlannedNode>().swap(plan_.nodes());
  std::vector<absl::AnyInvocable<void(absl::Status)>> callbacks;
  {
    MutexLock lock(mutex_);
    finished_ = true;
    running_ = false;
    callbacks.swap(callbacks_);
  }
  for (auto& done : callbacks) done(status);
  return status;
}

void GraphTask::Work::Deliver(Fed fed) {
  if (fed.to < 0) return;
  PlannedNode& planned = plan_.nodes()[static_cast<size_t>(fed.to)];
  for (size_t i = 0; i < fed.grads.size(); ++i)
    planned.sums[i].Add(0, std::move(fed.grads[i]));
  Arrived(fed.to);
}

void GraphTask::Work::Arrived(int to) {
  PlannedNode& planned = plan_.nodes()[static_cast<size_t>(to)];
  if (--planned.pending > 0) return;
  const bool leaf = dynamic_cast<Accumulator*>(planned.node.get()) != nullptr;
  ready_.emplace(!leaf, to);
}

void GraphTask::Work::Run(PlannedNode& planned) {
  Node& node = *planned.node;
  const auto* leaf = dynamic_cast<const Accumulator*>(&node);
  Tensors grads;
  Gradient rows;  // only leaves get rows
  for (GradientSum& sum : planned.sums) {
    Gradient grad = sum.Take();
    if (grad.is_rows()) {
      rows = std::move(grad);
    } else {
      grads.push_back(grad.values());
    }
  }
  Gradients results;
  const absl::Status status = CatchErrors([&] {
    if (rows.defined()) return LeaveAt(*leaf, rows);
    node.RunHooks(grads);
    Capture(planned, grads);
    if (planned.captured_only) return;
    if (leaf != nullptr) {
      if (grads[0].defined()) LeaveAt(*leaf, Dense(grads[0]));
      return;
    }
    results = RunNode(planned, grads);
    Require(results.size() == node.edges().size(), "backward", "gave ",
            results.size(), " gradients for ", node.edges().size(), " inputs");
    if (!options_.retain_graph) node.Release();
  });
  if (!status.ok())
    throw Error(Annotate(status, absl::StrCat("backward of ", node.name())));
  grads.clear();  // so that results are exclusive
  if (!results.empty()) FlowOn(planned, std::move(results));
}

void GraphTask::Work::LeaveAt(const Accumulator& leaf,
                              const Gradient& grad) const {
  const Variable variable = leaf.leaf();
  if (!variable.defined()) return;
  options_.sink ? options_.sink(variable, grad) : AddToLeaf(variable, grad);
}

bool GraphTask::Work::MayPostpone(const Variable& leaf) const {
  return options_.postpone && leaf.defined() && options_.postpone(leaf);
}

Gradients GraphTask::Work::RunNode(const PlannedNode& planned,
                                   const Tensors& grads) {
  std::vector<GradientRequest> requests(planned.flows.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const PlannedNode::Flow& flow = planned.flows[i];
    if (flow.to < 0) continue;
    const PlannedNode& target = plan_.nodes()[static_cast<size_t>(flow.to)];
    const auto* leaf = dynamic_cast<const Accumulator*>(target.node.get());
    if (leaf != nullptr && !leaf->has_hooks() && target.captures.empty()) {
      requests[i].rows = true;
      requests[i].postpone = MayPostpone(leaf->leaf());
    }
    requests[i].sum = SumOf(flow).Lend(flow.rank);
  }
  Gradients results = planned.node->BackwardAs(grads, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    GradientRequest& request = requests[i];
    const PlannedNode::Flow& flow = planned.flows[i];
    if (request.sum.defined()) SumOf(flow).Return(std::move(request.sum));
    if (!request.late) continue;
    const Node& target = *plan_.nodes()[static_cast<size_t>(flow.to)].node;
    options_.later(dynamic_cast<const Accumulator&>(target).leaf(),
                   std::move(request.late));
  }
  return results;
}

void GraphTask::Work::Capture(const PlannedNode& planned,
                              const Tensors& grads) const {
  for (const auto& [output, i] : planned.captures) {
    const Tensor& grad = grads[static_cast<size_t>(output)];
    if (grad.defined()) options_.capture(i, grad);
  }
}

void GraphTask::Work::FlowOn(const PlannedNode& planned, Gradients results) {
  for (size_t i = 0; i < planned.flows.size(); ++i) {
    const PlannedNode::Flow& flow = planned.flows[i];
    if (flow.to < 0) continue;
    SumOf(flow).Add(flow.rank, std::move(results[i]));
    Arrived(flow.to);
  }
}

GraphTask::GraphTask(const std::vector<std::shared_ptr<Node>>& roots,
                     Options options)
    : work_(std::make_shared<Work>(roots, std::move(options))) {}

absl::Status GraphTask::Feed(const std::shared_ptr<Node>& root,
                             std::vector<Tensor> grads) {
  return work_->Feed(root, std::move(grads));
}

void GraphTask::Fail(absl::Status status) { work_->Fail(std::move(status)); }

void GraphTask::OnDone(absl::AnyInvocable<void(absl::Status)> done) {
  work_->OnDone(std::move(done));
}

bool GraphTask::finished() const { return work_->finished(); }

}  // namespace baton::autograd
