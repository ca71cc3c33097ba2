// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/executor.h"
#include "core/mutex.h"
#include "rpc/transports/receiver.h"

namespace baton::rpc {

// Counts the living streams, so that what they use can outlive them, and keeps
// how many bytes those that were closed had left to send. Thread-safe.
class StreamCount {
 public:
  // Returns a number for the stream, for Owes and Remove.
  uint64_t Add();
  // The stream was closed before `bytes` of messages for `worker` were sent.
  void Owes(uint64_t stream, const std::string& worker, size_t bytes);
  void Remove(uint64_t stream);
  int count() const;
  void AwaitNone() const;
  // Describes the living streams and what they had left to send, by worker.
  std::string Describe() const;

 private:
  struct Debt {
    std::string worker = {};
    size_t bytes = 0;
  };

  mutable Mutex mutex_;
  mutable CondVar none_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Debt> alive_ ABSL_GUARDED_BY(mutex_);
};

inline constexpr char kStreamMethod[] = "/baton.rpc.Link/Open";

class GrpcStream;

// Receives a stream's events on gRPC's threads: it may parse, copy and queue,
// and must not block. Reads are reported one at a time; the end of a write may
// be reported concurrently with a read.
class GrpcStreamObserver {
 public:
  virtual ~GrpcStreamObserver() = default;
  // Returns false to stop reading until GrpcStream::ResumeReading.
  virtual bool OnFrames(GrpcStream& stream, const grpc::ByteBuffer& frames) = 0;
  virtual void OnWritten(GrpcStream& stream) = 0;
  // The stream broke: the last call. `why` is Unavailable.
  virtual void OnBroken(GrpcStream& stream, const absl::Status& why) = 0;
};

// One gRPC stream between two workers, from either end. gRPC keeps it alive
// until the call is done. Thread-safe.
class GrpcStream {
 public:
  // Dials; `count` and `reaper` must outlive the stream, which is destroyed on
  // `reaper`, because gRPC joins its own threads with a process's last channel.
  static std::shared_ptr<GrpcStream> Dial(
      std::shared_ptr<grpc::Channel> channel,
      std::shared_ptr<GrpcStreamObserver> observer, size_t max_message_bytes,
      StreamCount& count, Executor& reaper);
  // Serves a call. The reactor must be returned to gRPC.
  struct Accepted {
    grpc::ServerGenericBidiReactor* reactor;
    std::weak_ptr<GrpcStream> stream;
  };
  static Accepted Accept(grpc::CallbackServerContext* context,
                         std::shared_ptr<GrpcStreamObserver> observer,
                         size_t max_message_bytes, StreamCount& count);

  virtual ~GrpcStream() = default;

  // Reports further events to `observer`. Returns false if the stream has
  // ended: then no more events follow.
  bool SetObserver(std::shared_ptr<GrpcStreamObserver> observer);
  // Writes one at a time: the next one is allowed after OnWritten. Does nothing
  // on a closed stream.
  void Write(grpc::ByteBuffer frames);
  void ResumeReading();
  // Ends the call. The observer receives no further events, except from calls
  // under way.
  void Close();
  // Notes how many bytes of messages for `worker` Close leaves unsent.
  void Owes(const std::string& worker, size_t bytes) {
    count_.Owes(number_, worker, bytes);
  }
  // Closes the stream after a last message, which still reaches the other end.
  // Only for accepted streams on which no write is under way.
  void CloseWith(grpc::ByteBuffer frames);

  // Checks the caller's certificate (rpc/transports/credentials.h). OK on a
  // dialed stream.
  virtual absl::Status CheckCaller(const std::string& worker) const = 0;

  virtual std::shared_ptr<GrpcStream> shared() = 0;
  Receiver& receiver() { return receiver_; }

 protected:
  GrpcStream(std::shared_ptr<GrpcStreamObserver> observer,
             size_t max_message_bytes, StreamCount& count)
      : count_(count),
        number_(count.Add()),
        receiver_(max_message_bytes),
        observer_(std::move(observer)) {}

  // What dialed and accepted streams do differently. StartRead and StartWrite
  // run under the lock; gRPC never calls a reaction from within them.
  virtual void StartReadInto(grpc::ByteBuffer* buffer) = 0;
  virtual void StartWriteOf(const grpc::ByteBuffer* buffer) = 0;
  virtual void StartLastWriteOf(const grpc::ByteBuffer* buffer) = 0;
  // Ends the call. Called once, after which nothing is started.
  virtual void StartEnd(bool writing) = 0;

  void BeginReading();
  void HandleRead();
  void HandleWritten(bool ok);
  // Ends the call if it has not been ended. Returns the observer if it has not
  // been told yet.
  std::shared_ptr<GrpcStreamObserver> End();
  bool writing() const {
    MutexLock lock(mutex_);
    return writing_;
  }

  StreamCount& count_;
  const uint64_t number_;

 private:
  Receiver receiver_;
  mutable Mutex mutex_;
  std::shared_ptr<GrpcStreamObserver> observer_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // ResumeReading came while the frames that paused it were being handled.
  bool resume_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer in_;   // gRPC's while reading_
  grpc::ByteBuffer out_;  // gRPC's while writing_
};

}  // namespace baton::rpc
