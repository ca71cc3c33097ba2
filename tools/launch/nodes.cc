// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/launch/nodes.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "core/mutex.h"
#include "core/status.h"
#include "rpc/call_context.h"
#include "rpc/registry.h"

namespace baton::tools {
namespace {

constexpr char kFirst[] = "node0";

// Node 0's part: receives the other nodes' calls.
class Desk {
 public:
  Desk(const NodesOptions& options, std::shared_ptr<RunInbox> inbox)
      : workers_(options.workers),
        on_end_(options.on_end),
        inbox_(std::move(inbox)) {
    for (int node = 1; node < options.nodes; ++node) here_.insert(node);
  }

  void WorkerEnded(const std::string& name, const std::string& how) const {
    if (on_end_) on_end_(name, how);
  }
  void WorkerLost(const std::string& name, const std::string& event) const {
    inbox_->Add({.event = event, .lost = {name}});
  }
  // The node has ended its part of the run.
  void NodeLeft(int node) {
    if (end().ready()) {
      Remove(node);
    } else {
      NodeLost(node, absl::AbortedError("it was stopped"));
    }
  }
  void NodeLost(int node, const absl::Status& why) {
    if (!Remove(node)) return;
    std::set<std::string> lost;
    for (int i = 0; i < workers_; ++i)
      lost.insert(WorkerName(node, workers_, i));
    inbox_->Add({.event = absl::StrCat("baton-run: node ", node,
                                       " is lost: ", why.message()),
                 .lost = std::move(lost)});
  }
  Future<int> end() const { return end_.future(); }
  void End(int code, std::chrono::milliseconds limit) {
    end_.Set(code);
    const auto until = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (!here_.empty() && changed_.WaitUntil(mutex_, until)) {
    }
  }

 private:
  // Returns false if it was removed before.
  bool Remove(int node) {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
    return here_.erase(node) > 0;
  }

  const int workers_;
  const std::function<void(const std::string&, const std::string&)> on_end_;
  const std::shared_ptr<RunInbox> inbox_;
  const Promise<int> end_;  // the exit code
  Mutex mutex_;
  CondVar changed_;
  std::set<int> here_ ABSL_GUARDED_BY(mutex_);  // of the other nodes
};

// These are called by other nodes at node 0.
absl::Status TellEnd(rpc::CallContext& call, const std::string& worker,
                     const std::string& how) {
  call.agent().service<Desk>()->WorkerEnded(worker, how);
  return absl::OkStatus();
}
absl::Status TellLoss(rpc::CallContext& call, const std::string& worker,
                      const std::string& event) {
  call.agent().service<Desk>()->WorkerLost(worker, event);
  return absl::OkStatus();
}
// Returns the end of the run. The call stays under way while the node takes
// part, so that its loss is noticed.
Future<int> AwaitEnd(rpc::CallContext& call, int32_t node) {
  const auto desk = call.agent().service<Desk>();
  call.OnCancel(
      [desk, node](const absl::Status& why) { desk->NodeLost(node, why); });
  return desk->end();
}
absl::Status TellLeave(rpc::CallContext& call, int32_t node) {
  call.agent().service<Desk>()->NodeLeft(node);
  return absl::OkStatus();
}

class JoinedNodes final : public Nodes {
 public:
  JoinedNodes(int node, std::unique_ptr<rpc::Agent> agent)
      : node_(node), agent_(std::move(agent)) {}

  void FollowFirst(const std::shared_ptr<RunInbox>& inbox) {
    agent_->Async<&AwaitEnd>(kFirst, {.timeout = kNoLimit}, node_)
        .OnReady([inbox](const absl::StatusOr<int>& code) {
          inbox->Add({.event = code.ok()
                                   ? ""
                                   : absl::StrCat("baton-run: node 0 is lost: ",
                                                  code.status().message()),
                      .ends = true,
                      .code = code.value_or(1)});
        });
  }
  void WorkerEnded(const std::string& name, const std::string& how) override {
    told_.push_back(agent_->Async<&TellEnd>(kFirst, name, how));
  }
  void WorkerLost(const std::string& name, const std::string& event) override {
    told_.push_back(agent_->Async<&TellLoss>(kFirst, name, event));
  }
  void End(int code, std::chrono::milliseconds limit) override {
    if (node_ == 0) {
      agent_->service<Desk>()->End(code, limit);
    } else {
      // Node 0 runs calls concurrently, and must hear of losses before it hears
      // that the node leaves because of them. It may be lost itself.
      WaitAll(told_).Await(limit / 2).IgnoreError();
      agent_->Async<&TellLeave>(kFirst, {.timeout = limit / 2}, node_)
          .Await(kNoLimit)
          .IgnoreError();
    }
    agent_->Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}).IgnoreError();
  }

 private:
  const int32_t node_;
  const std::unique_ptr<rpc::Agent> agent_;
  std::vector<Future<void>> told_;
};

}  // namespace

std::string WorkerName(int node, int workers, int number) {
  return absl::StrCat("worker", node * workers + number + 1);
}

absl::StatusOr<std::unique_ptr<Nodes>> Nodes::Join(
    NodesOptions options, std::shared_ptr<RunInbox> inbox) {
  rpc::ClusterOptions& join = options.join;
  join.cluster += ".nodes";
  join.name = absl::StrCat("node", options.node);
  join.rank = options.node;
  join.world_size = options.nodes;
  if (options.node == 0) {
    const auto desk = std::make_shared<Desk>(options, inbox);
    join.agent.on_start = [desk](rpc::Agent& agent) {
      agent.SetService(desk);
      // A node may be lost before it calls.
      agent.WatchMembers([desk](const rpc::MemberEvent& event) {
        if (event.kind == rpc::MemberEvent::Kind::kLeft ||
            event.kind == rpc::MemberEvent::Kind::kLost)
          desk->NodeLost(static_cast<int>(event.worker.rank), event.cause);
      });
    };
  }
  rpc::Registry registry;
  registry.AddFunction<&TellEnd>()
      .AddFunction<&TellLoss>()
      .AddFunction<&AwaitEnd>()
      .AddFunction<&TellLeave>();
  ASSIGN_OR_RETURN(auto agent,
                   rpc::JoinCluster(std::move(join), std::move(registry)));
  auto nodes = std::make_unique<JoinedNodes>(options.node, std::move(agent));
  if (options.node > 0) nodes->FollowFirst(inbox);
  return nodes;
}

}  // namespace baton::tools
