// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/rings.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

constexpr int kThreads = 2;
constexpr size_t kLengthBytes = sizeof(uint32_t);

}  // namespace

// A thread that runs a task when the poller stops holds the poller itself until
// the task has ended, so the result is another count of it.
std::shared_ptr<RingPoller> RingPoller::Make(
    std::shared_ptr<FutexEvent> wakeup) {
  std::shared_ptr<RingPoller> poller(new RingPoller(std::move(wakeup)));
  RingPoller* const made = poller.get();
  return {made, [poller = std::move(poller)](RingPoller*) mutable {
            std::exchange(poller, nullptr)->Stop();
          }};
}

void RingPoller::Add(std::shared_ptr<RingSource> source) {
  {
    MutexLock lock(mutex_);
    if (stopping_ ||
        std::find(sources_.begin(), sources_.end(), source) != sources_.end()) {
      return;
    }
    sources_.push_back(std::move(source));
    ++version_;
    while (members_.size() < kThreads) {
      Member& member = members_.emplace_back();
      member.thread =
          std::thread([self = shared_from_this(), at_task = member.at_task] {
            self->Run(*at_task);
          });
    }
  }
  Wake();
}

void RingPoller::Remove(const RingSource* source) {
  {
    MutexLock lock(mutex_);
    std::erase_if(sources_,
                  [source](const auto& each) { return each.get() == source; });
    ++version_;
  }
  Wake();  // so that the leader drops it
}

void RingPoller::Check(RingSource& source) {
  if (!leading_ && source.Ready()) wakeup_->WakeAll();
}

void RingPoller::Stop() {
  std::list<Member> members;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    sources_.clear();
    members.swap(members_);
  }
  wakeup_->WakeAll();
  for (Member& member : members) {
    // A task may take any time, and may be the caller of Stop.
    if (*member.at_task) {
      member.thread.detach();
    } else {
      member.thread.join();
    }
  }
}

void RingPoller::Run(std::atomic<bool>& at_task) {
  pthread_setname_np(pthread_self(), "baton-ring");
  InlineTask inline_task;
  ++free_threads_;
  for (;;) {
    // In this order, because Stop changes the value last.
    const uint32_t seen = wakeup_->value();
    if (stopping_) break;
    if (FutexEvent::Asleep(seen) || !TakeLead()) {
      wakeup_->Sleep(seen);
      continue;
    }
    do {
      --free_threads_;
      Lead(inline_task);
      const bool busy = !inline_task.empty();
      at_task = true;
      // Stop either waits for this thread or detaches it.
      if (stopping_) inline_task.Post();
      inline_task.Run();
      at_task = false;
      ++free_threads_;
      if (!busy) break;
      // The answer to what the task has just sent probably arrives next.
    } while (!stopping_ && TakeLead());
  }
  --free_threads_;
}

void RingPoller::Lead(InlineTask& inline_task) {
  wakeup_->WakeUp();
  while (!stopping_) {
    const bool served = ServeWhatIsReady();
    if (served) spinning_.Came();
    if (!inline_task.empty()) {
      if (free_threads_ > 0 && StepAside()) return;
      inline_task.Post();
    }
    if (!served && !spinning_.Wait() && StepAside()) return;
  }
  served_.clear();
  leading_ = false;
}

bool RingPoller::StepAside() {
  wakeup_->FallAsleep();
  const uint32_t asleep = wakeup_->value();
  // Something may have arrived before others saw that they must wake a thread.
  if (AnythingReady() || version_ != served_version_) {
    wakeup_->WakeUp();
    return false;
  }
  leading_ = false;
  // A thread that was woken meanwhile may have found that there was a leader.
  if (wakeup_->value() == asleep || !TakeLead()) return true;
  wakeup_->WakeUp();
  return false;
}

bool RingPoller::AnythingReady() const {
  return std::any_of(served_.begin(), served_.end(),
                     [](const auto& source) { return source->Ready(); });
}

void RingPoller::Refresh() {
  if (version_ == served_version_) return;
  Sources old;
  MutexLock lock(mutex_);
  old.swap(served_);
  served_ = sources_;
  served_version_ = version_;
}

bool RingPoller::ServeWhatIsReady() {
  Refresh();
  bool served = false;
  for (const auto& source : served_) {
    if (!source->Ready()) continue;
    source->Serve();
    served = true;
  }
  return served;
}

absl::StatusOr<std::string_view> RingReceiver::NextFrame() {
  const std::string_view left = std::string_view(bytes_).substr(taken_);
  if (left.size() < kLengthBytes) return std::string_view();
  uint32_t length;
  std::memcpy(&length, left.data(), kLengthBytes);
  if (length < kFrameHeaderBytes || length > kMaxGrpcMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", length, " bytes in a ring"));
  }
  if (left.size() - kLengthBytes < length) return std::string_view();
  taken_ += kLengthBytes + length;
  return left.substr(kLengthBytes, length);
}

absl::Status RingReceiver::Read(Device device, size_t most,
                                Receiver::Batch& batch) {
  if (!unread_.exchange(false)) {
    bytes_.erase(0, std::exchange(taken_, 0));
    RETURN_IF_ERROR(end_.ring->Read(bytes_));
    if (end_.ring->WriterWaits()) end_.wakeup->Wake();
  }
  while (!unread_) {
    ASSIGN_OR_RETURN(const std::string_view frame, NextFrame());
    if (frame.empty()) break;
    RETURN_IF_ERROR(
        receiver_.Consume(FrameReader(frame), channels_.get(), batch, device));
    unread_ = batch.bytes >= most;
  }
  return absl::OkStatus();
}

bool RingSender::Ready() {
  if (!waits_) return false;
  const auto room = end_.ring->Room();
  return !room.ok() || *room > 0;
}

absl::Status RingSender::Write(std::string_view bytes) {
  if (rest_.empty()) {
    ASSIGN_OR_RETURN(const size_t written, end_.ring->Write(bytes));
    unpublished_ = unpublished_ || written > 0;
    bytes.remove_prefix(written);
  }
  rest_.append(bytes);
  return absl::OkStatus();
}

absl::Status RingSender::Add(std::string_view frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  RETURN_IF_ERROR(
      Write({reinterpret_cast<const char*>(&length), kLengthBytes}));
  return Write(frame);
}

absl::StatusOr<bool> RingSender::Flush() {
  for (bool asked = false; !rest_.empty();) {
    ASSIGN_OR_RETURN(const size_t written, end_.ring->Write(rest_));
    rest_.erase(0, written);
    unpublished_ = unpublished_ || written > 0;
    if (written > 0) {
      asked = false;
      continue;
    }
    if (asked) return false;
    // The reader only reads what has been published.
    Publish();
    waits_ = true;  // first: the answer may come at once
    end_.ring->AwaitRoom();
    asked = true;
  }
  waits_ = false;
  return true;
}

void RingSender::Publish() {
  if (!std::exchange(unpublished_, false)) return;
  end_.ring->Publish();
  end_.wakeup->Wake();
}

}  // namespace baton::rpc
