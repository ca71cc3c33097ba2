// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/distributed/engine.h"

// The protocol of distributed autograd without calls: engines joined by
// functions that run on one pool, where a test can lose messages and let
// workers die.
namespace baton::dist {

class Net;

class NetPeers final : public Peers {
 public:
  NetPeers(Net* net, std::string self) : net_(net), self_(std::move(self)) {}
  Future<Marking> Mark(const std::string& to, const MarkRequest& r) override;
  Future<WantedPlaces> Want(const std::string& to,
                            const WantRequest& r) override;
  Future<void> Gradient(const std::string& to, const GradientMessage& m,
                        std::chrono::milliseconds timeout) override;
  Future<std::vector<Tensor>> Finish(const std::string& to,
                                     const FinishRequest& r) override;
  Future<std::string> Abort(const std::string& to, const ContextId& c, PassId p,
                            const absl::Status& why,
                            std::chrono::milliseconds timeout) override;
  Future<void> MoveToGrad(const std::string& to, const ContextId& c,
                          uint64_t number) override;
  Future<void> Release(const std::string& to, const ContextId& c,
                       const std::string& why) override;
  Future<void> Join(const ContextId& c) override;

 private:
  Net* const net_;
  const std::string self_;
};

rpc::WorkerInfo Worker(const std::string& name, uint64_t incarnation = 1);
ScopeNote NoteOf(const ContextId& context);
// Whether `holds` does within five seconds.
bool Eventually(const std::function<bool()>& holds);

// Thread-safe, but for what lets workers and messages be lost.
class Net {
 public:
  explicit Net(const std::vector<std::string>& names) : pool_(2, "net") {
    uint64_t incarnation = 100;
    for (const std::string& name : names) {
      engines_[name] =
          std::make_shared<Engine>(Worker(name, ++incarnation), &pool_,
                                   std::make_shared<NetPeers>(this, name));
    }
  }

  Engine& at(const std::string& name) { return *engines_.at(name); }
  void Kill(const std::string& name) { dead_ = name; }
  // From then on `from` cannot ask the root `root`.
  void Part(const std::string& from, const std::string& root) {
    parted_ = {from, root};
  }
  bool Parts(const std::string& from, const std::string& root) const {
    return parted_ == std::pair(from, root);
  }
  // Gradients to `name` are never heard of again.
  void LoseGradientsTo(const std::string& name) { gradients_lost_to_ = name; }
  bool LosesGradientsTo(const std::string& to) const {
    return gradients_lost_to_ == to;
  }

  // Runs `call` on the pool with the engine of `to`.
  template <typename T, typename Call>
  Future<T> Post(const std::string& to, Call call) {
    Promise<T> promise;
    if (to == dead_) {
      promise.Set(absl::UnavailableError("worker " + to + " is dead"));
      return promise.future();
    }
    pool_.Post([engine = engines_.at(to), promise, call, to] {
      call(*engine).OnReady([promise, to](const ResultOf<T>& result) {
        absl::Status status = baton::internal::StatusOf(result);
        if (status.ok()) {
          promise.Set(result);
        } else {
          promise.Set(Annotate(status, "worker " + to));
        }
      });
    });
    return promise.future();
  }

  // What happens to values that a message of `context` takes along, to a worker
  // that has no GPU.
  absl::StatusOr<std::vector<Variable>> Move(
      const std::string& from, const std::string& to, const ContextId& context,
      const std::vector<Variable>& values) {
    auto scope = StateAt(from, context);
    auto crossing = scope->BeginSend(Worker(to));
    std::vector<int> positions;
    for (const Variable& value : values) {
      positions.push_back(static_cast<SendCrossing&>(*crossing).Add(value));
    }
    std::string bytes = scope->FinishSend(*crossing);
    ASSIGN_OR_RETURN(auto there, at(to).Open(Worker(from), bytes));
    ASSIGN_OR_RETURN(auto arrival, there->BeginReceive(Worker(from), bytes));
    std::vector<Variable> moved;
    for (size_t i = 0; i < values.size(); ++i) {
      auto& taker = static_cast<ReceiveCrossing&>(*arrival);
      ASSIGN_OR_RETURN(
          Variable value,
          taker.Take(values[i].tensor().To(Device::Cpu()), positions[i]));
      moved.push_back(value);
    }
    RETURN_IF_ERROR(there->FinishReceive(*arrival));
    return moved;
  }

  std::shared_ptr<ContextState> StateAt(const std::string& name,
                                        const ContextId& id) {
    auto scope = at(name).Open(Worker(name), Encode(NoteOf(id)));
    return std::dynamic_pointer_cast<ContextState>(*scope);
  }

  Promise<void> lost;         // what waits for a lost message waits on this
  std::atomic<int> joins{0};  // asked of roots
  std::atomic<int> marks{0};  // asked of workers

 private:
  std::map<std::string, std::shared_ptr<Engine>> engines_;
  std::string dead_;
  std::string gradients_lost_to_;
  std::pair<std::string, std::string> parted_;
  ThreadPool pool_;  // last: its tasks use the engines
};

// Alice, with a context that the end of a test must find ended everywhere, bob
// and carol.
class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : net_({"alice", "bob", "carol"}) {
    context_ = net_.at("alice").NewContext();
  }
  ~EngineTest() override {
    EXPECT_TRUE(net_.at("alice").Release(context_->id()).Await().ok());
    net_.lost.Set(absl::OkStatus());
    for (const char* name : {"alice", "bob", "carol"}) {
      EXPECT_EQ(net_.at(name).num_contexts(), 0u) << name;
    }
  }
  absl::Status Backward(const Variable& loss, bool retain_graph = false) {
    BackwardOptions options;
    options.retain_graph = retain_graph;
    return net_.at("alice").Backward(context_, {loss}, {}, options).Await();
  }
  Variable Move(const char* from, const char* to, const Variable& value) {
    return (*net_.Move(from, to, context_->id(), {value}))[0];
  }
  static Variable Leaf(double value) {
    return Variable(Tensor::Full({2, 2}, value), true);
  }
  // Its first element; -1: none.
  static double First(const Tensor& tensor) {
    return tensor.defined() ? tensor.Flatten().Select(0, 0).Item() : -1;
  }
  // -1: none.
  double GradientAt(const char* worker, const Variable& leaf) {
    return First(
        net_.StateAt(worker, context_->id())->GradientOf(leaf).Dense());
  }

  Net net_;
  std::shared_ptr<ContextState> context_;
};

}  // namespace baton::dist
