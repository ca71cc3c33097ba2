// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "core/device.h"

// A stream is a queue of GPU work. Every op runs on its thread's current stream
// of its tensors' device, and returns before the work has ended. Tensors
// remember the streams that read and wrote them, so a tensor made on one stream
// may simply be used on another, and dropped: the library inserts the waits. On
// the CPU streams have no effect: work has ended when a call returns.
namespace baton {

// A handle to one of a device's queues, which live as long as the process. The
// work of one stream runs in order, concurrently with the work of others.
// Thread-safe.
class Stream {
 public:
  // Returns the main thread's initial stream; other threads begin with their
  // own.
  static Stream Default(Device device);
  // Returns one of the device's 31 other streams, in rotation.
  static Stream Next(Device device);
  // Returns the companion of `stream`, which has a lower priority: for work
  // that is not needed soon, such as weight gradients, so that it fills the
  // time that `stream` leaves idle. A companion's companion is itself; while
  // companions are turned off, so is every stream's.
  static Stream Beside(const Stream& stream);
  static void UseCompanions(bool use);  // process-wide; on from the start
  // Returns the stream for copies from one device to another.
  static Stream ForCopies(Device from, Device to);
  // Returns one of 8 streams, in rotation, that run only the device's
  // collectives.
  static Stream ForCollectives(Device device);
  // Adopts `cuda_stream`, a cudaStream_t of the caller's on a GPU (null: the
  // legacy stream), until Release is called. Ops in a StreamScope of the result
  // are enqueued on it, after the caller's own work, and tensors remember it
  // like any other stream. Throws Error(InvalidArgument) for the CPU,
  // Error(FailedPrecondition) in a build without CUDA, and
  // Error(ResourceExhausted) if 16 streams of the device are adopted already.
  static Stream Adopt(Device device, void* cuda_stream);
  // Waits for the adopted stream's work and gives the stream back to the
  // caller, who may then destroy it; this handle must not be used any more,
  // except to wait for it. Tensors stay valid. Throws Error(InvalidArgument)
  // for a stream that is not adopted.
  void Release() const;

  Device device() const { return device_; }
  int index() const { return index_; }

  // Waits until all its work has ended; throws Error for a failure on the
  // device.
  void Synchronize() const;
  // Makes later work of this stream wait for the present work of `other`.
  void WaitFor(const Stream& other) const;
  // The end of this stream's present work.
  using Position = uint64_t;
  Position position() const;
  // Like WaitFor, for the work that `other` had at `position` and, within a
  // recording (core/graph.h), little more; otherwise for all of its present
  // work.
  void WaitFor(const Stream& other, Position position) const;

  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  Stream(Device device, int index) : device_(device), index_(index) {}
  friend Stream CurrentStream(Device device);

  Device device_;
  int index_;
};

// Returns the calling thread's stream of `device`.
Stream CurrentStream(Device device);

// Makes `stream` the calling thread's current stream of its device.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const Stream former_;
};

// Waits until all streams of the device are idle.
void Synchronize(Device device);

// Calls `then`, on a thread for such calls, when `stream` has finished its
// present work or when the device has failed, with its error. For the CPU it
// calls it at once, on the calling thread. Not allowed within a recording.
void AfterWork(const Stream& stream, std::function<void(absl::Status)> then);

// A point in a stream's work. Thread-compatible.
class Event {
 public:
  explicit Event(Device device);
  void Record(const Stream& stream);
  // Records a time, only for MillisecondsSince and not for Wait: within a
  // recorded graph (core/graph.h), the time of each replay.
  void RecordTime(const Stream& stream);
  // Makes later work of `stream`, of any device, wait for the event.
  void Wait(const Stream& stream) const;
  bool HasEnded() const;
  void Synchronize() const;
  // Returns the milliseconds from `earlier` to this event; both must be
  // recorded and have ended. On the CPU it is the time between the calls of
  // Record.
  double MillisecondsSince(const Event& earlier) const;

 private:
  void RequireDevice(const Stream& stream) const;

  Device device_;
  std::shared_ptr<void> handle_;
  int64_t host_nanoseconds_ = 0;
};

}  // namespace baton
