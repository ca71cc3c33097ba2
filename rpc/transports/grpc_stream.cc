// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/grpc_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "rpc/transports/credentials.h"

namespace baton::rpc {

uint64_t StreamCount::Add() {
  MutexLock lock(mutex_);
  const uint64_t stream = next_++;
  alive_[stream];
  return stream;
}

void StreamCount::Owes(uint64_t stream, const std::string& worker,
                       size_t bytes) {
  MutexLock lock(mutex_);
  auto found = alive_.find(stream);
  if (found != alive_.end()) found->second = {worker, bytes};
}

void StreamCount::Remove(uint64_t stream) {
  MutexLock lock(mutex_);
  alive_.erase(stream);
  if (alive_.empty()) none_.NotifyAll();
}

int StreamCount::count() const {
  MutexLock lock(mutex_);
  return static_cast<int>(alive_.size());
}

void StreamCount::AwaitNone() const {
  MutexLock lock(mutex_);
  while (!alive_.empty()) none_.Wait(mutex_);
}

std::string StreamCount::Describe() const {
  std::map<std::string, size_t> owed;
  size_t nameless = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [stream, debt] : alive_) {
      if (debt.worker.empty()) {
        ++nameless;
      } else {
        owed[debt.worker] += debt.bytes;
      }
    }
  }
  std::vector<std::string> parts;
  for (const auto& [worker, bytes] : owed) {
    parts.push_back(absl::StrCat("worker ", worker, " has not taken ", bytes,
                                 " bytes that were on their way"));
  }
  if (nameless > 0) {
    parts.push_back(
        absl::StrCat(nameless, " connections to nobody in particular"));
  }
  if (parts.empty()) return "its own threads, which have not ended yet";
  return absl::StrJoin(parts, "; ");
}

bool GrpcStream::SetObserver(std::shared_ptr<GrpcStreamObserver> observer) {
  MutexLock lock(mutex_);
  if (open_) observer_ = std::move(observer);
  return open_;
}

void GrpcStream::Write(grpc::ByteBuffer frames) {
  MutexLock lock(mutex_);
  if (!open_) return;
  BATON_CHECK(!writing_);
  out_.Swap(&frames);
  writing_ = true;
  StartWriteOf(&out_);
}

void GrpcStream::BeginReading() {
  MutexLock lock(mutex_);
  reading_ = true;
  StartReadInto(&in_);
}

void GrpcStream::ResumeReading() {
  MutexLock lock(mutex_);
  if (!open_) return;
  if (reading_) {
    resume_wanted_ = true;
    return;
  }
  reading_ = true;
  StartReadInto(&in_);
}

void GrpcStream::HandleRead() {
  std::shared_ptr<GrpcStreamObserver> observer;
  {
    MutexLock lock(mutex_);
    observer = observer_;
    resume_wanted_ = false;  // the observer knows by now
  }
  const bool more = observer != nullptr && observer->OnFrames(*this, in_);
  MutexLock lock(mutex_);
  in_.Clear();
  reading_ = open_ && (more || resume_wanted_);
  resume_wanted_ = false;
  if (reading_) StartReadInto(&in_);
}

void GrpcStream::HandleWritten(bool ok) {
  std::shared_ptr<GrpcStreamObserver> observer;
  {
    MutexLock lock(mutex_);
    out_.Clear();
    writing_ = false;
    observer = observer_;
  }
  // A failed write also ends the read, which is reported.
  if (ok && observer != nullptr) observer->OnWritten(*this);
}

std::shared_ptr<GrpcStreamObserver> GrpcStream::End() {
  std::shared_ptr<GrpcStreamObserver> observer;
  bool writing;
  {
    MutexLock lock(mutex_);
    observer.swap(observer_);
    if (!open_) return observer;
    open_ = false;
    writing = writing_;
  }
  StartEnd(writing);
  return observer;
}

void GrpcStream::Close() { (void)End(); }

void GrpcStream::CloseWith(grpc::ByteBuffer frames) {
  MutexLock lock(mutex_);
  observer_ = nullptr;
  if (!open_) return;
  open_ = false;
  out_.Swap(&frames);
  StartLastWriteOf(&out_);
}

namespace {

class DialedStream final
    : public GrpcStream,
      public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  DialedStream(std::shared_ptr<grpc::Channel> channel,
               std::shared_ptr<GrpcStreamObserver> observer,
               size_t max_message_bytes, StreamCount& count, Executor& reaper)
      : GrpcStream(std::move(observer), max_message_bytes, count),
        stub_(std::move(channel)),
        reaper_(reaper) {}

  static std::shared_ptr<GrpcStream> Start(
      std::shared_ptr<DialedStream> stream) {
    stream->self_ = stream;
    stream->stub_.PrepareBidiStreamingCall(&stream->context_, kStreamMethod,
                                           grpc::StubOptions(), stream.get());
    stream->AddHold();  // writes start outside of reactions
    stream->BeginReading();
    stream->StartCall();
    return stream;
  }

  absl::Status CheckCaller(const std::string&) const override {
    return absl::OkStatus();
  }
  std::shared_ptr<GrpcStream> shared() override { return self_; }

 private:
  void StartReadInto(grpc::ByteBuffer* buffer) override { StartRead(buffer); }
  void StartWriteOf(const grpc::ByteBuffer* buffer) override {
    StartWrite(buffer);
  }
  void StartLastWriteOf(const grpc::ByteBuffer*) override { StartEnd(true); }
  void StartEnd(bool) override {
    // Cancelling a call that the other end has ended may replace its status.
    if (!ended_.load()) context_.TryCancel();
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      HandleRead();
    } else {
      ended_.store(true);
      broken_observer_ = End();
    }
  }
  void OnWriteDone(bool ok) override { HandleWritten(ok); }
  void OnDone(const grpc::Status& status) override {
    if (broken_observer_ != nullptr) {
      const std::string text = status.error_message().empty()
                                   ? "the other side closed it"
                                   : status.error_message();
      broken_observer_->OnBroken(*this, absl::UnavailableError(text));
      broken_observer_ = nullptr;
    }
    // The call is destroyed before the transport sees that the stream ended.
    reaper_.Post(
        [self = std::move(self_), &count = count_, number = number_]() mutable {
          self.reset();
          count.Remove(number);
        });
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  Executor& reaper_;
  std::atomic<bool> ended_{false};      // by the other end
  std::shared_ptr<DialedStream> self_;  // until OnDone
  std::shared_ptr<GrpcStreamObserver>
      broken_observer_;  // from OnReadDone to OnDone
};

class AcceptedStream final : public GrpcStream,
                             public grpc::ServerGenericBidiReactor {
 public:
  AcceptedStream(grpc::CallbackServerContext* context,
                 std::shared_ptr<GrpcStreamObserver> observer,
                 size_t max_message_bytes, StreamCount& count)
      : GrpcStream(std::move(observer), max_message_bytes, count),
        context_(context) {}

  static Accepted Start(std::shared_ptr<AcceptedStream> stream) {
    stream->self_ = stream;
    stream->BeginReading();
    return {stream.get(), stream};
  }

  absl::Status CheckCaller(const std::string& worker) const override {
    return rpc::CheckCaller(*context_, worker);
  }
  std::shared_ptr<GrpcStream> shared() override { return self_; }

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
    // First, because from the next line on the end of the write may finish the
    // call on another thread, which destroys the context.
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
    if (std::shared_ptr<GrpcStreamObserver> observer = End()) {
      observer->OnBroken(*this,
                         absl::UnavailableError("the other side closed it"));
    }
  }
  void OnDone() override {
    std::shared_ptr<AcceptedStream> self = std::move(self_);
    StreamCount& count = count_;
    const uint64_t number = number_;
    self.reset();
    count.Remove(number);
  }

  grpc::CallbackServerContext* const context_;
  std::atomic<bool> finish_after_write_{false};
  std::shared_ptr<AcceptedStream> self_;  // until OnDone
};

}  // namespace

std::shared_ptr<GrpcStream> GrpcStream::Dial(
    std::shared_ptr<grpc::Channel> channel,
    std::shared_ptr<GrpcStreamObserver> observer, size_t max_message_bytes,
    StreamCount& count, Executor& reaper) {
  return DialedStream::Start(
      std::make_shared<DialedStream>(std::move(channel), std::move(observer),
                                     max_message_bytes, count, reaper));
}

GrpcStream::Accepted GrpcStream::Accept(
    grpc::CallbackServerContext* context,
    std::shared_ptr<GrpcStreamObserver> observer, size_t max_message_bytes,
    StreamCount& count) {
  return AcceptedStream::Start(std::make_shared<AcceptedStream>(
      context, std::move(observer), max_message_bytes, count));
}

}  // namespace baton::rpc
