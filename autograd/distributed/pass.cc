// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/distributed/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::dist {
namespace {

using Nodes = std::vector<std::shared_ptr<autograd::Node>>;

// Sums of gradients follow the order of the roots: that of the sends, not that
// in which marks happened to arrive. A backward's own root, which is no send,
// comes first.
void SortByEdge(Nodes& roots) {
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

Pass::~Pass() = default;

std::chrono::milliseconds Pass::TimeLeft() const {
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::ceil<std::chrono::milliseconds>(
                      options_.deadline - std::chrono::steady_clock::now()));
}

absl::StatusOr<std::vector<std::shared_ptr<ReceiveNode>>> Pass::Mark(
    const Nodes& roots) {
  MutexLock lock(mutex_);
  if (!failed_.ok()) return failed_;
  if (task_ != nullptr) {
    return absl::FailedPreconditionError(
        "an edge was marked after its pass began to run");
  }
  std::vector<std::shared_ptr<ReceiveNode>> reached;
  Nodes open;
  for (const auto& root : roots) {
    if (!unfed_.insert(root.get()).second) continue;
    roots_.push_back(root);
    if (visited_.insert(root.get()).second) open.push_back(root);
  }
  while (!open.empty()) {
    std::shared_ptr<autograd::Node> node = std::move(open.back());
    open.pop_back();
    if (auto edge = std::dynamic_pointer_cast<ReceiveNode>(node)) {
      reached.push_back(std::move(edge));
      continue;
    }
    for (const autograd::Edge& edge : node->edges()) {
      if (edge.valid() && visited_.insert(edge.node.get()).second) {
        open.push_back(edge.node);
      }
    }
  }
  return reached;
}

void Pass::AddPeer(const std::string& worker) {
  MutexLock lock(mutex_);
  peers_.insert(worker);
}

std::set<std::string> Pass::TakePeers() {
  MutexLock lock(mutex_);
  return std::exchange(peers_, {});
}

std::shared_ptr<autograd::GraphTask> Pass::TaskLocked() {
  if (task_ == nullptr) {
    SortByEdge(roots_);
    autograd::GraphTask::Options options;
    options.retain_graph = options_.retain_graph;
    options.sink = options_.sink;
    task_ = std::make_shared<autograd::GraphTask>(roots_, std::move(options));
  }
  return task_;
}

absl::Status Pass::Feed(const std::shared_ptr<autograd::Node>& root,
                        std::vector<Tensor> grads) {
  std::shared_ptr<autograd::GraphTask> task;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return failed_;
    if (unfed_.erase(root.get()) == 0) {
      return absl::InvalidArgumentError(
          "a gradient came for an edge that is not waited for");
    }
    task = TaskLocked();
  }
  Running running(this);
  return task->Feed(root, std::move(grads));
}

void Pass::Fail(const absl::Status& status) {
  std::shared_ptr<autograd::GraphTask> task;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    failed_ = status;
    task = task_;
  }
  finished_.Set(status);
  if (task != nullptr) task->Fail(status);
}

Future<void> Pass::Finished() {
  std::shared_ptr<autograd::GraphTask> task;
  {
    MutexLock lock(mutex_);
    if (failed_.ok() && !watched_) {
      watched_ = true;
      task = TaskLocked();
    }
  }
  if (task != nullptr) {
    task->OnDone([weak = weak_from_this()](const absl::Status& status) {
      if (auto self = weak.lock()) self->Settle(status);
    });
  }
  return finished_.future();
}

// One of the things that Finished waits for is over.
void Pass::Settle(const absl::Status& status) {
  if (!status.ok()) {
    Fail(status);
    return;
  }
  {
    MutexLock lock(mutex_);
    if (--unsettled_ > 0) return;
  }
  finished_.Set(absl::OkStatus());
}

std::string Pass::WaitsFor() const {
  MutexLock lock(mutex_);
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
    ++unsettled_;
  }
  options_.send(*this, edge, std::move(grads))
      .OnReady([self = shared_from_this()](const absl::Status& status) {
        self->Settle(status);
      });
}

}  // namespace baton::dist
