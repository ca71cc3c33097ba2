// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

// Gradients are added in the order of the roots. Sort them by their sends,
// because marks arrive in any order. A backward's own root, which is not a
// send, comes first.
void SortByEdge(Pass::Nodes& roots) {
  auto key = [](const std::shared_ptr<autograd::Node>& node) {
    auto* edge = dynamic_cast<const SendNode*>(node.get());
    return edge == nullptr ? 0 : static_cast<uint64_t>(edge->id());
  };
  std::stable_sort(roots.begin(), roots.end(),
                   [&](auto& a, auto& b) { return key(a) < key(b); });
}

}  // namespace

Pass::Pass(PassId id, Options options)
    : id_(id), options_(std::move(options)) {}

Pass::~Pass() { GiveBackNodes(); }

Pass::Terms Pass::terms() const {
  MutexLock lock(mutex_);
  return terms_;
}

std::chrono::milliseconds Pass::TimeLeft() const {
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::ceil<std::chrono::milliseconds>(
                      terms().deadline - std::chrono::steady_clock::now()));
}

absl::StatusOr<size_t> Pass::Want(const std::vector<Variable>& places) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return failed_;
  if (task_ != nullptr)
    return absl::FailedPreconditionError("the pass has begun to run");
  const size_t first = wanted_.size();
  for (size_t i = 0; i < places.size(); ++i) {
    autograd::Edge edge = places[i].gradient_edge();
    if (!edge.valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat("value ", i, " does not require grad"));
    }
    wanted_.push_back(std::move(edge));
  }
  captured_.resize(wanted_.size());
  return first;
}

bool Pass::wants() const {
  MutexLock lock(mutex_);
  return !wanted_.empty();
}

std::vector<Tensor> Pass::TakeWanted() {
  MutexLock lock(mutex_);
  return std::exchange(captured_, {});
}

absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> Pass::Mark(
    const Nodes& roots, const Terms& terms) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return failed_;
  std::vector<std::shared_ptr<ReceiveNode>> reached;
  if (!std::exchange(marked_, true)) terms_ = terms;
  if (roots.empty()) return reached;
  if (task_ != nullptr) {
    return absl::FailedPreconditionError(
        "an edge was marked after its pass began to run");
  }
  ASSIGN_OR_RETURN(Nodes taken, options_.claims->Take(id_, roots));
  for (const auto& root : roots) {
    if (unfed_.insert(root.get()).second) roots_.push_back(root);
  }
  for (const auto& node : taken) {
    taken_.push_back(node.get());
    auto edge = std::dynamic_pointer_cast<ReceiveNode>(node);
    if (edge == nullptr) continue;
    ends_.push_back(node);
    reached.push_back(std::move(edge));
  }
  return reached;
}

std::vector<Pass::Fed> Pass::TakeEarly() {
  MutexLock lock(mutex_);
  return std::exchange(early_, {});
}

void Pass::AddPeer(const std::string& worker) {
  MutexLock lock(mutex_);
  peers_.insert(worker);
}

std::set<std::string> Pass::TakePeers() {
  MutexLock lock(mutex_);
  return std::exchange(peers_, {});
}

bool Pass::TakeFinish() {
  MutexLock lock(mutex_);
  return !std::exchange(finish_taken_, true);
}

// Callbacks run on the threads that feed the pass, so that they are done before
// the graph is.
autograd::GraphTask::Options Pass::TaskOptionsLocked() {
  autograd::GraphTask::Options options;
  options.retain_graph = terms_.retain_graph;
  options.sink = options_.sink;
  options.scope.all = !terms_.only_wanted;
  if (!terms_.only_wanted) return options;
  options.scope.wanted = wanted_;
  options.scope.ends = ends_;
  options.capture = [weak = weak_from_this()](size_t i, const Tensor& grad) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    MutexLock lock(self->mutex_);
    if (i < self->captured_.size()) self->captured_[i] = grad;
  };
  return options;
}

std::shared_ptr<autograd::GraphTask> Pass::Task() {
  std::shared_ptr<autograd::GraphTask> task;
  {
    MutexLock lock(mutex_);
    if (task_ != nullptr || !failed_.ok()) return task_;
    SortByEdge(roots_);
    task = task_ =
        std::make_shared<autograd::GraphTask>(roots_, TaskOptionsLocked());
  }
  task->OnDone([weak = weak_from_this()](const absl::Status& status) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      MutexLock lock(self->mutex_);
      self->graph_done_ = true;
      if (self->failed_.ok()) self->failed_ = status;
    }
    self->Settle();
  });
  return task;
}

absl::Status Pass::Failure() const {
  MutexLock lock(mutex_);
  return failed_;
}

absl::Status Pass::Feed(const std::shared_ptr<autograd::Node>& root,
                        std::vector<Tensor> grads) {
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return failed_;
    if (!marked_) {
      early_.push_back({root, std::move(grads)});
      return absl::OkStatus();
    }
    if (unfed_.erase(root.get()) == 0) {
      return absl::InvalidArgumentError(
          "a gradient came for an edge that is not waited for");
    }
  }
  const auto task = Task();
  if (task == nullptr) return Failure();
  {
    Running running(this);
    RETURN_IF_ERROR(task->Feed(root, std::move(grads)));
  }
  Settle();
  return absl::OkStatus();
}

void Pass::Fail(const absl::Status& status) {
  std::shared_ptr<autograd::GraphTask> task;
  {
    MutexLock lock(mutex_);
    if (over_ || !failed_.ok()) return;
    failed_ = status;
    early_.clear();
    task = task_;
  }
  if (task != nullptr) task->Fail(status);
  Settle();
}

Future<void> Pass::Finished() {
  Task();
  return Ended();
}

void Pass::Settle() {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    const bool ends = failed_.ok()
                          ? graph_done_ && unfed_.empty() && sends_ == 0
                          : task_ == nullptr || graph_done_;
    if (!ends) return;
    over_ = true;
    status = failed_;
  }
  GiveBackNodes();
  ended_.Set(status);
}

void Pass::GiveBackNodes() {
  std::vector<const autograd::Node*> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(taken_);
  }
  if (!taken.empty()) options_.claims->GiveBack(taken);
}

std::string Pass::WaitsFor() const {
  MutexLock lock(mutex_);
  if (!marked_) return "word from the root";
  for (const auto& root : roots_) {
    if (unfed_.count(root.get()) == 0) continue;
    if (auto edge = std::dynamic_pointer_cast<SendNode>(root)) {
      return absl::StrCat("the gradient of edge ",
                          static_cast<uint64_t>(edge->id()), " from worker ",
                          edge->to());
    }
  }
  return "its own nodes to run";
}

void Pass::Carry(const ReceiveNode& edge, std::vector<Tensor> grads) {
  {
    MutexLock lock(mutex_);
    ++sends_;
  }
  options_.send(*this, edge, std::move(grads))
      .OnReady([self = shared_from_this()](const absl::Status& status) {
        {
          MutexLock lock(self->mutex_);
          --self->sends_;
        }
        if (!status.ok()) self->Fail(status);
        self->Settle();
      });
}

}  // namespace baton::dist
