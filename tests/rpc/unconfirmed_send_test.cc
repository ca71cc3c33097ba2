// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <pthread.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "rpc/agent.h"
#include "tests/support/local_cluster.h"
#include "tests/support/status_matchers.h"

// Calls on an object that its owner has not said to know yet wait here, and are
// sent when it does.
namespace baton::testing {
namespace {

using namespace std::chrono_literals;

std::string ThisThread() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

// Which threads large tensors were sent on. Thread-safe.
class SendingThreads {
 public:
  void Note() {
    MutexLock lock(mutex_);
    names_.insert(ThisThread());
  }
  std::set<std::string> names() const {
    MutexLock lock(mutex_);
    return names_;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

class WatchedTransport final : public rpc::Transport {
 public:
  WatchedTransport(std::unique_ptr<rpc::Transport> inner,
                   std::shared_ptr<SendingThreads> threads)
      : inner_(std::move(inner)), threads_(std::move(threads)) {}
  std::string address() const override { return inner_->address(); }
  absl::Status Start(const rpc::WorkerInfo& self,
                     rpc::MessageHandler* handler) override {
    return inner_->Start(self, handler);
  }
  void AddPeer(const rpc::WorkerInfo& peer) override { inner_->AddPeer(peer); }
  void RemovePeer(const std::string& name) override {
    inner_->RemovePeer(name);
  }
  void Forget(const rpc::WorkerInfo& peer) override { inner_->Forget(peer); }
  void Disconnect(const std::string& name, Task then) override {
    inner_->Disconnect(name, std::move(then));
  }
  void Send(const std::string& peer, rpc::Message message, Sent sent) override {
    if (rpc::BytesOf(message) > 1'000'000) threads_->Note();
    inner_->Send(peer, std::move(message), std::move(sent));
  }
  void Shutdown(std::chrono::milliseconds timeout) override {
    inner_->Shutdown(timeout);
  }

 private:
  const std::unique_ptr<rpc::Transport> inner_;
  const std::shared_ptr<SendingThreads> threads_;
};

class WatchedMaker final : public TransportMaker {
 public:
  WatchedMaker(TransportKind kind, std::shared_ptr<SendingThreads> threads)
      : inner_(MakerOf(kind)()), threads_(std::move(threads)) {}
  std::unique_ptr<rpc::Transport> Make(const rpc::Registry& r) override {
    return std::make_unique<WatchedTransport>(inner_->Make(r), threads_);
  }

 private:
  const std::unique_ptr<TransportMaker> inner_;
  const std::shared_ptr<SendingThreads> threads_;
};

// What it was called with, in order.
class Record {
 public:
  void Append(int value) {
    MutexLock lock(mutex_);
    values_.push_back(value);
  }
  void AppendSize(const Tensor& x) { Append(static_cast<int>(x.numel())); }
  std::vector<int> values() const {
    MutexLock lock(mutex_);
    return values_;
  }
  using Exports =
      rpc::Methods<&Record::Append, &Record::AppendSize, &Record::values>;

 private:
  mutable Mutex mutex_;
  std::vector<int> values_ ABSL_GUARDED_BY(mutex_);
};
std::unique_ptr<Record> NewRecord() { return std::make_unique<Record>(); }

void FillForUnconfirmed(rpc::Registry& registry) {
  registry.Add<Record>();
  registry.AddFunction<&NewRecord>();
}

// What bob says comes late, so that alice has many calls that wait for it.
class UnconfirmedSend : public ::testing::TestWithParam<TransportKind> {
 protected:
  UnconfirmedSend() {
    faults_->Add({.kind = rpc::FaultKind::kDelay,
                  .matches = [](const rpc::WorkerInfo& from, const auto&,
                                const auto&) { return from.name == "bob"; },
                  .delay = 200ms});
  }
  ~UnconfirmedSend() override { cluster_.ExpectIdle(); }

  const std::shared_ptr<SendingThreads> threads_ =
      std::make_shared<SendingThreads>();
  const std::shared_ptr<rpc::FaultPlan> faults_ =
      std::make_shared<rpc::FaultPlan>();
  LocalCluster cluster_{{.fill = &FillForUnconfirmed,
                         .worker_threads = 1,
                         .transports =
                             [kind = GetParam(), threads = threads_] {
                               return std::make_unique<WatchedMaker>(kind,
                                                                     threads);
                             },
                         .faults = faults_}};
};
// Not with rings, whose threads also run what the pool would.
INSTANTIATE_TEST_SUITE_P(, UnconfirmedSend,
                         ::testing::Values(TransportKind::kInProcess,
                                           TransportKind::kGrpcStreams),
                         TransportName);

TEST_P(UnconfirmedSend, LeavesOnAThreadThatMayWait) {
  const auto record = cluster_["alice"].Remote<&NewRecord>("bob");
  const auto done =
      record.Async<&Record::AppendSize>(Tensor::Ones({1'000'000}));
  EXPECT_THAT(done.Await(), IsOk());
  EXPECT_EQ(threads_->names(), std::set<std::string>{"baton-complete"});
}

TEST_P(UnconfirmedSend, KeepsTheOrderOfTheCalls) {
  const auto record = cluster_["alice"].Remote<&NewRecord>("bob");
  std::vector<Future<void>> calls;
  std::vector<int> expected;
  const auto call = [&](int i) {
    calls.push_back(record.Async<&Record::Append>(i));
    expected.push_back(i);
  };
  for (int i = 0; i < 2000; ++i) call(i);
  // Some of these come while those that have waited are sent.
  while (!record.confirmed() && expected.size() < 20'000)
    call(static_cast<int>(expected.size()));
  for (int i = 0; i < 2000; ++i) call(static_cast<int>(expected.size()));
  for (const auto& each : calls) EXPECT_THAT(each.Await(), IsOk());
  const auto values = record.Async<&Record::values>().Await();
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(*values, expected);
}

// Over gRPC large tensors overtake what is small.
using UnconfirmedSendInProcess = UnconfirmedSend;
INSTANTIATE_TEST_SUITE_P(, UnconfirmedSendInProcess,
                         ::testing::Values(TransportKind::kInProcess),
                         TransportName);

TEST_P(UnconfirmedSendInProcess, KeepsTheOrderOfShortAndLongCalls) {
  const auto record = cluster_["alice"].Remote<&NewRecord>("bob");
  const Tensor large = Tensor::Ones({1'000'000});
  std::vector<Future<void>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(record.Async<&Record::Append>(i));
    calls.push_back(record.Async<&Record::AppendSize>(large));
  }
  for (const auto& each : calls) EXPECT_THAT(each.Await(), IsOk());
  const auto values = record.Async<&Record::values>().Await();
  ASSERT_THAT(values, IsOk());
  EXPECT_EQ(*values,
            (std::vector<int>{0, 1'000'000, 1, 1'000'000, 2, 1'000'000}));
}

}  // namespace
}  // namespace baton::testing
