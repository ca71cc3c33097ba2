// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/lane.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/transports/credentials.h"

namespace baton::rpc {

bool Lane::SetOwner(std::shared_ptr<LaneOwner> owner) {
  MutexLock lock(mutex_);
  if (open_) owner_ = std::move(owner);
  return open_;
}

void Lane::Write(grpc::ByteBuffer frames) {
  MutexLock lock(mutex_);
  if (!open_) return;
  BATON_CHECK(!writing_);
  out_.Swap(&frames);
  writing_ = true;
  StartWriteOf(&out_);
}

void Lane::BeginReading() {
  MutexLock lock(mutex_);
  reading_ = true;
  StartReadInto(&in_);
}

void Lane::ResumeReading() {
  MutexLock lock(mutex_);
  if (!open_) return;
  if (reading_) {
    resume_wanted_ = true;
    return;
  }
  reading_ = true;
  StartReadInto(&in_);
}

void Lane::HandleRead() {
  std::shared_ptr<LaneOwner> owner;
  {
    MutexLock lock(mutex_);
    owner = owner_;
    resume_wanted_ = false;  // by now the owner knows
  }
  const bool more = owner != nullptr && owner->OnFrames(*this, in_);
  MutexLock lock(mutex_);
  in_.Clear();
  reading_ = open_ && (more || resume_wanted_);
  resume_wanted_ = false;
  if (reading_) StartReadInto(&in_);
}

void Lane::HandleWritten(bool ok) {
  std::shared_ptr<LaneOwner> owner;
  {
    MutexLock lock(mutex_);
    out_.Clear();
    writing_ = false;
    owner = owner_;
  }
  // A failed write ends the read as well, which is reported.
  if (ok && owner != nullptr) owner->OnWritten(*this);
}

std::shared_ptr<LaneOwner> Lane::End() {
  std::shared_ptr<LaneOwner> owner;
  bool writing;
  {
    MutexLock lock(mutex_);
    owner.swap(owner_);
    if (!open_) return owner;
    open_ = false;
    writing = writing_;
  }
  StartEnd(writing);
  return owner;
}

void Lane::Close() { (void)End(); }

void Lane::CloseWith(grpc::ByteBuffer frames) {
  MutexLock lock(mutex_);
  owner_ = nullptr;
  if (!open_) return;
  open_ = false;
  out_.Swap(&frames);
  StartLastWriteOf(&out_);
}

namespace {

class DialedLane final
    : public Lane,
      public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  DialedLane(std::shared_ptr<grpc::Channel> channel,
             std::shared_ptr<LaneOwner> owner, size_t max_message_bytes,
             LaneCount& count, Executor& reaper)
      : Lane(std::move(owner), max_message_bytes, count),
        stub_(std::move(channel)),
        reaper_(reaper) {}

  static std::shared_ptr<Lane> Start(std::shared_ptr<DialedLane> lane) {
    lane->self_ = lane;
    lane->stub_.PrepareBidiStreamingCall(&lane->context_, kLaneMethod,
                                         grpc::StubOptions(), lane.get());
    lane->AddHold();  // writes come from outside of reactions
    lane->BeginReading();
    lane->StartCall();
    return lane;
  }

  absl::Status CheckCaller(const std::string&) const override {
    return absl::OkStatus();
  }
  std::shared_ptr<Lane> shared() override { return self_; }

 private:
  void StartReadInto(grpc::ByteBuffer* buffer) override { StartRead(buffer); }
  void StartWriteOf(const grpc::ByteBuffer* buffer) override {
    StartWrite(buffer);
  }
  void StartLastWriteOf(const grpc::ByteBuffer*) override { StartEnd(true); }
  void StartEnd(bool) override {
    // To cancel what the other side has ended may replace what it said.
    if (!ended_.load()) context_.TryCancel();
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      HandleRead();
    } else {
      ended_.store(true);
      broken_owner_ = End();
    }
  }
  void OnWriteDone(bool ok) override { HandleWritten(ok); }
  void OnDone(const grpc::Status& status) override {
    if (broken_owner_ != nullptr) {
      const std::string text = status.error_message().empty()
                                   ? "the other side closed it"
                                   : status.error_message();
      broken_owner_->OnBroken(*this, absl::UnavailableError(text));
      broken_owner_ = nullptr;
    }
    // The call and what it holds go before the transport hears of it.
    reaper_.Post(
        [self = std::move(self_), &count = count_, number = number_]() mutable {
          self.reset();
          count.Remove(number);
        });
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  Executor& reaper_;
  std::atomic<bool> ended_{false};           // by the other side
  std::shared_ptr<DialedLane> self_;         // until OnDone
  std::shared_ptr<LaneOwner> broken_owner_;  // from OnReadDone to OnDone
};

class AcceptedLane final : public Lane, public grpc::ServerGenericBidiReactor {
 public:
  AcceptedLane(grpc::CallbackServerContext* context,
               std::shared_ptr<LaneOwner> owner, size_t max_message_bytes,
               LaneCount& count)
      : Lane(std::move(owner), max_message_bytes, count), context_(context) {}

  static Accepted Start(std::shared_ptr<AcceptedLane> lane) {
    lane->self_ = lane;
    lane->BeginReading();
    return {lane.get(), lane};
  }

  absl::Status CheckCaller(const std::string& worker) const override {
    return rpc::CheckCaller(*context_, worker);
  }
  std::shared_ptr<Lane> shared() override { return self_; }

 private:
  void StartReadInto(grpc::ByteBuffer* buffer) override { StartRead(buffer); }
  void StartWriteOf(const grpc::ByteBuffer* buffer) override {
    StartWrite(buffer);
  }
  void StartLastWriteOf(const grpc::ByteBuffer* buffer) override {
    StartWriteAndFinish(buffer, grpc::WriteOptions(), grpc::Status::OK);
  }
  // A status must not overtake a write under way.
  void StartEnd(bool writing) override {
    if (!writing) {
      Finish(grpc::Status::OK);
      return;
    }
    // First: the context is gone as soon as the call is finished, which the end
    // of the write does on another thread once it may.
    context_->TryCancel();
    finish_after_write_.store(true);
    if (!this->writing()) FinishOnce();
  }
  void FinishOnce() {
    if (finish_after_write_.exchange(false)) Finish(grpc::Status::OK);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      HandleRead();
    } else {
      Break();
    }
  }
  void OnWriteDone(bool ok) override {
    HandleWritten(ok);
    FinishOnce();
    if (!ok) Break();
  }
  void OnCancel() override { Break(); }
  void Break() {
    if (std::shared_ptr<LaneOwner> owner = End()) {
      owner->OnBroken(*this,
                      absl::UnavailableError("the other side closed it"));
    }
  }
  void OnDone() override {
    std::shared_ptr<AcceptedLane> self = std::move(self_);
    LaneCount& count = count_;
    const uint64_t number = number_;
    self.reset();
    count.Remove(number);
  }

  grpc::CallbackServerContext* const context_;
  std::atomic<bool> finish_after_write_{false};
  std::shared_ptr<AcceptedLane> self_;  // until OnDone
};

}  // namespace

std::shared_ptr<Lane> Lane::Dial(std::shared_ptr<grpc::Channel> channel,
                                 std::shared_ptr<LaneOwner> owner,
                                 size_t max_message_bytes, LaneCount& count,
                                 Executor& reaper) {
  return DialedLane::Start(std::make_shared<DialedLane>(
      std::move(channel), std::move(owner), max_message_bytes, count, reaper));
}

Lane::Accepted Lane::Accept(grpc::CallbackServerContext* context,
                            std::shared_ptr<LaneOwner> owner,
                            size_t max_message_bytes, LaneCount& count) {
  return AcceptedLane::Start(std::make_shared<AcceptedLane>(
      context, std::move(owner), max_message_bytes, count));
}

}  // namespace baton::rpc
