// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "rpc/transport.h"

// A worker that is nothing but its transport.
namespace baton::rpc {

inline constexpr std::chrono::seconds kPatience{30};

// Keeps what arrives. Every wait ends after kPatience. Thread-safe.
class Mailbox final : public MessageHandler {
 public:
  struct Letter {
    WorkerInfo from;
    Message message;
  };
  void OnMessage(const WorkerInfo& from, Message message) override;
  void OnPeerLost(const WorkerInfo& peer, absl::Status why) override;

  // Runs in OnMessage, before the letter is kept.
  void OnEach(std::function<void(const Letter&)> callback);
  // The letters so far, once there are `count`.
  std::vector<Letter> Await(size_t count);
  std::vector<absl::Status> AwaitLost(size_t count);
  // Whether nobody was lost before and for that time from now.
  bool NobodyLostFor(std::chrono::milliseconds time);
  size_t count() const;
  size_t lost() const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::function<void(const Letter&)> on_each_ ABSL_GUARDED_BY(mutex_);
  std::vector<Letter> letters_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> lost_ ABSL_GUARDED_BY(mutex_);
};

// Collects the outcomes of sends. Thread-safe.
class SentLog {
 public:
  Transport::Sent Next();
  // How all `count` sends ended, in the order they ended.
  std::vector<absl::Status> Await(size_t count);
  // Waits for as many, but not longer than that.
  void AwaitFor(size_t count, std::chrono::milliseconds time) const;
  size_t count() const;

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::vector<absl::Status> done ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct TestWorker {
  TestWorker(std::string name, int rank, std::unique_ptr<Transport> transport);
  ~TestWorker();
  void Start() { ASSERT_TRUE(transport->Start(info, &mailbox).ok()); }
  // The outcome, once known.
  absl::Status SendTo(const std::string& peer, Message message);
  // Until tensors can be sent so on all connections there are; false after
  // kPatience.
  bool AwaitChannel(const std::string& name);
  // The same for small messages by rings.
  bool AwaitRings();

  Mailbox mailbox;
  WorkerInfo info;
  std::unique_ptr<Transport> transport;
};

}  // namespace baton::rpc
