// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fault.h"

#include <map>
#include <thread>
#include <utility>

#include "core/executor.h"
#include "rpc/snapshots.h"

namespace baton::rpc {

void FaultPlan::Add(FaultRule rule) {
  MutexLock lock(mutex_);
  rules_.push_back({.rule = std::move(rule)});
}

void FaultPlan::Clear() {
  MutexLock lock(mutex_);
  rules_.clear();
}

int FaultPlan::injected() const {
  MutexLock lock(mutex_);
  return injected_;
}

std::unique_ptr<FaultRule> FaultPlan::Draw(const WorkerInfo& from,
                                           const std::string& to,
                                           const Message& message) {
  MutexLock lock(mutex_);
  for (Armed& armed : rules_) {
    const FaultRule& rule = armed.rule;
    if (rule.matches != nullptr && !rule.matches(from, to, message)) continue;
    if (armed.matched++ < rule.skip || armed.fired >= rule.at_most) continue;
    if (std::uniform_real_distribution<>(0, 1)(random_) >= rule.probability) {
      continue;
    }
    ++armed.fired;
    ++injected_;
    return std::make_unique<FaultRule>(rule);
  }
  return nullptr;
}

class FaultTransport final : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner,
                 std::shared_ptr<FaultPlan> plan)
      : plan_(std::move(plan)), inner_(std::move(inner)) {
    timer_ = std::thread([this] { RunTimer(); });
  }
  ~FaultTransport() override {
    Shutdown(std::chrono::milliseconds(0));
    timer_.join();
  }

  std::string address() const override { return inner_->address(); }
  absl::Status Start(const WorkerInfo& self, MessageHandler* handler) override {
    {
      MutexLock lock(mutex_);
      self_ = self;
    }
    return inner_->Start(self, handler);
  }
  void AddPeer(const WorkerInfo& peer) override { inner_->AddPeer(peer); }
  void RemovePeer(const std::string& name) override {
    inner_->RemovePeer(name);
  }
  void Forget(const WorkerInfo& peer) override { inner_->Forget(peer); }
  void Disconnect(const std::string& name, Task then) override {
    inner_->Disconnect(name, std::move(then));
  }
  void Send(const std::string& peer, Message message, Sent sent) override;
  Tensor EmptyFor(const std::string& peer, const Shape& shape,
                  const TensorOptions& options) override {
    return inner_->EmptyFor(peer, shape, options);
  }
  std::vector<ChannelInfo> Channels() const override {
    return inner_->Channels();
  }
  void Shutdown(std::chrono::milliseconds timeout) override;
  std::vector<TensorChannelInfo> TensorChannels() override {
    return inner_->TensorChannels();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    std::string peer;
    Message message;
    Sent sent;
    bool until_next = false;  // sent with the next message to `peer`
    internal::Snapshots snapshots = {};
  };

  void Apply(const FaultRule& rule, Held held);
  void Hold(Held held, std::chrono::milliseconds delay);
  void ReleaseReordered(const std::string& peer);
  void Forward(Held held) {
    const auto pins = held.snapshots.Restore(held.message.tensors);
    inner_->Send(held.peer, std::move(held.message), std::move(held.sent));
  }
  void Finish(Sent sent, absl::Status status) {
    thread_.Post([sent = std::move(sent), status]() mutable { sent(status); });
  }
  void RunTimer();

  const std::shared_ptr<FaultPlan> plan_;
  const std::unique_ptr<Transport> inner_;

  Mutex mutex_;
  CondVar wake_;
  WorkerInfo self_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<Clock::time_point, Held> held_ ABSL_GUARDED_BY(mutex_);
  std::thread timer_;
  ThreadPool thread_{1, "baton-fault"};
};

void FaultTransport::Send(const std::string& peer, Message message, Sent sent) {
  WorkerInfo self;
  {
    MutexLock lock(mutex_);
    self = self_;
  }
  std::unique_ptr<FaultRule> rule = plan_->Draw(self, peer, message);
  Held held{peer, std::move(message), std::move(sent)};
  if (rule != nullptr) {
    Apply(*rule, std::move(held));
    return;
  }
  Forward(std::move(held));
  ReleaseReordered(peer);
}

void FaultTransport::Apply(const FaultRule& rule, Held held) {
  switch (rule.kind) {
    case FaultKind::kDrop:
      Finish(std::move(held.sent), absl::OkStatus());
      return;
    case FaultKind::kDelay:
      Hold(std::move(held), rule.delay);
      return;
    case FaultKind::kDuplicate: {
      Message copy = held.message;
      Forward({held.peer, std::move(held.message), [](absl::Status) {}});
      Forward({held.peer, std::move(copy), std::move(held.sent)});
      return;
    }
    case FaultKind::kReorder:
      held.until_next = true;
      Hold(std::move(held), rule.delay);
      return;
    case FaultKind::kFail:
      rule.report([sent = std::move(held.sent)]() mutable {
        sent(absl::UnavailableError("the message was lost"));
      });
      return;
    case FaultKind::kSever:
      inner_->Disconnect(held.peer, [sent = std::move(held.sent)]() mutable {
        sent(absl::UnavailableError("the connection was severed"));
      });
      return;
  }
}

void FaultTransport::Hold(Held held, std::chrono::milliseconds delay) {
  held.snapshots.Take(held.message.tensors);
  MutexLock lock(mutex_);
  if (stopping_) {
    Finish(std::move(held.sent), absl::UnavailableError("shut down"));
    return;
  }
  held_.emplace(Clock::now() + delay, std::move(held));
  wake_.NotifyAll();
}

void FaultTransport::ReleaseReordered(const std::string& peer) {
  std::vector<Held> ready;
  {
    MutexLock lock(mutex_);
    for (auto it = held_.begin(); it != held_.end();) {
      if (it->second.until_next && it->second.peer == peer) {
        ready.push_back(std::move(it->second));
        it = held_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (Held& held : ready) Forward(std::move(held));
}

void FaultTransport::RunTimer() {
  mutex_.Lock();
  while (!stopping_) {
    if (held_.empty()) {
      wake_.Wait(mutex_);
    } else if (auto due = held_.begin()->first; due > Clock::now()) {
      wake_.WaitUntil(mutex_, due);
    } else {
      Held held = std::move(held_.begin()->second);
      held_.erase(held_.begin());
      mutex_.Unlock();
      Forward(std::move(held));
      mutex_.Lock();
    }
  }
  mutex_.Unlock();
}

void FaultTransport::Shutdown(std::chrono::milliseconds timeout) {
  std::multimap<Clock::time_point, Held> dropped;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    dropped.swap(held_);
    wake_.NotifyAll();
  }
  for (auto& [due, held] : dropped) {
    Finish(std::move(held.sent),
           absl::UnavailableError("the transport is shut down"));
  }
  inner_->Shutdown(timeout);
}

std::unique_ptr<Transport> WithFaults(std::unique_ptr<Transport> inner,
                                      std::shared_ptr<FaultPlan> plan) {
  return std::make_unique<FaultTransport>(std::move(inner), std::move(plan));
}

}  // namespace baton::rpc
