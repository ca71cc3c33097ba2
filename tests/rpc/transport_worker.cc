// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/transport_worker.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace baton::rpc {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void Mailbox::OnMessage(const WorkerInfo& from, Message message) {
  Letter letter{from, std::move(message)};
  std::function<void(const Letter&)> on_each;
  {
    MutexLock lock(mutex_);
    on_each = on_each_;
  }
  if (on_each) on_each(letter);
  letter.message.receipt.reset();
  MutexLock lock(mutex_);
  letters_.push_back(std::move(letter));
  changed_.NotifyAll();
}

void Mailbox::OnPeerLost(const WorkerInfo&, absl::Status why) {
  MutexLock lock(mutex_);
  lost_.push_back(std::move(why));
  changed_.NotifyAll();
}

void Mailbox::OnEach(std::function<void(const Letter&)> callback) {
  MutexLock lock(mutex_);
  on_each_ = std::move(callback);
}

std::vector<Mailbox::Letter> Mailbox::Await(size_t count) {
  const auto deadline = steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (letters_.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  EXPECT_GE(letters_.size(), count) << "messages did not arrive";
  return letters_;
}

std::vector<absl::Status> Mailbox::AwaitLost(size_t count) {
  const auto deadline = steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (lost_.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  EXPECT_GE(lost_.size(), count) << "OnPeerLost did not come";
  return lost_;
}

bool Mailbox::NobodyLostFor(std::chrono::milliseconds time) {
  const auto deadline = steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (lost_.empty() && changed_.WaitUntil(mutex_, deadline)) {
  }
  return lost_.empty();
}

size_t Mailbox::count() const {
  MutexLock lock(mutex_);
  return letters_.size();
}

size_t Mailbox::lost() const {
  MutexLock lock(mutex_);
  return lost_.size();
}

Transport::Sent SentLog::Next() {
  return [state = state_](absl::Status status) {
    MutexLock lock(state->mutex);
    state->done.push_back(std::move(status));
    state->changed.NotifyAll();
  };
}

std::vector<absl::Status> SentLog::Await(size_t count) {
  const auto deadline = steady_clock::now() + kPatience;
  MutexLock lock(state_->mutex);
  while (state_->done.size() < count) {
    if (!state_->changed.WaitUntil(state_->mutex, deadline)) break;
  }
  EXPECT_GE(state_->done.size(), count) << "Sent did not run";
  return state_->done;
}

void SentLog::AwaitFor(size_t count, milliseconds time) const {
  const auto deadline = steady_clock::now() + time;
  MutexLock lock(state_->mutex);
  while (state_->done.size() < count &&
         state_->changed.WaitUntil(state_->mutex, deadline)) {
  }
}

size_t SentLog::count() const {
  MutexLock lock(state_->mutex);
  return state_->done.size();
}

TestWorker::TestWorker(std::string name, int rank,
                       std::unique_ptr<Transport> made)
    : transport(std::move(made)) {
  static std::atomic<uint64_t> incarnation{1};
  info = {std::move(name), Rank{rank}, incarnation++, transport->address()};
}

TestWorker::~TestWorker() { transport->Shutdown(milliseconds(0)); }

absl::Status TestWorker::SendTo(const std::string& peer, Message message) {
  SentLog log;
  transport->Send(peer, std::move(message), log.Next());
  const std::vector<absl::Status> done = log.Await(1);
  return done.empty() ? absl::DeadlineExceededError("no outcome") : done[0];
}

bool TestWorker::AwaitChannel(const std::string& name) {
  const auto deadline = steady_clock::now() + kPatience;
  while (steady_clock::now() < deadline) {
    const std::vector<TensorChannelInfo> infos = transport->TensorChannels();
    if (!infos.empty() && std::all_of(infos.begin(), infos.end(),
                                      [&](const TensorChannelInfo& info) {
                                        return info.name != name || info.open;
                                      })) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

bool TestWorker::AwaitRings() {
  const auto deadline = steady_clock::now() + kPatience;
  while (steady_clock::now() < deadline) {
    const std::vector<ChannelInfo> infos = transport->Channels();
    if (!infos.empty() &&
        std::all_of(infos.begin(), infos.end(), [](const ChannelInfo& info) {
          return info.detail.find("by shared memory") != std::string::npos;
        })) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

}  // namespace baton::rpc
