// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "core/device.h"

// Queues of GPU work. Every op runs on its thread's current stream of its
// tensors' device, and returns before the work has ended. Tensors remember the
// streams that read and wrote them, so a tensor made on one stream may be used
// on another, and dropped, without a thought: the library inserts the waits.
// On the CPU all of this is nothing: work has ended when a call returns.
namespace baton {

// A handle to one of a device's queues; they live as long as the process. Work
// of one stream runs in order, beside the work of others. Thread-safe.
class Stream {
 public:
  // The main thread's to begin with; other threads have one of their own.
  static Stream Default(Device device);
  // One of 31 others of the device, dealt out in turn.
  static Stream Next(Device device);
  // The companion of `stream`, of lower priority: for work that nobody waits
  // for soon, such as gradients of weights, which then fills what `stream`
  // leaves idle. A companion's own is itself, and everything's while companions
  // are turned off.
  static Stream Beside(const Stream& stream);
  static void UseCompanions(bool use);  // process-wide; on from the start
  // The stream that carries copies from one device to another.
  static Stream ForCopies(Device from, Device to);
  // One of 8 that carry what a device does together with others, dealt out in
  // turn: nothing else is given to them.
  static Stream ForCollectives(Device device);
  // `cuda_stream`, a cudaStream_t of a GPU that the caller has (null: the
  // legacy stream), until Release: ops of a StreamScope of it are given to it,
  // behind what the caller has given it, and tensors remember it as they do
  // others. Throws Error(InvalidArgument) for the CPU,
  // Error(FailedPrecondition) in a build without CUDA, and
  // Error(ResourceExhausted) where 16 of the device are adopted.
  static Stream Adopt(Device device, void* cuda_stream);
  // Waits for its work; then the caller may destroy it, and nobody may use this
  // but to wait for it. Tensors stay as they are. Throws Error(InvalidArgument)
  // for a stream that is not adopted.
  void Release() const;

  Device device() const { return device_; }
  int index() const { return index_; }

  // Until all its work has ended; throws Error for what failed on the device.
  void Synchronize() const;
  // Later work of this stream runs after what `other` has been given by now.
  void WaitFor(const Stream& other) const;
  // What this stream has been given by now.
  using Position = uint64_t;
  Position position() const;
  // As WaitFor, for what `other` had been given by `position` and, within a
  // recording (core/graph.h), little more; otherwise for all it has by now.
  void WaitFor(const Stream& other, Position position) const;

  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  Stream(Device device, int index) : device_(device), index_(index) {}
  friend Stream CurrentStream(Device device);

  Device device_;
  int index_;
};

// The calling thread's stream of `device`.
Stream CurrentStream(Device device);

// Makes `stream` the calling thread's current one of its device while it lives.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const Stream former_;
};

// Until all streams of the device are idle.
void Synchronize(Device device);

// Calls `then` once `stream` has done what it has been given by now, or with
// the error that the device has failed with, on a thread that is kept for such
// calls; of the CPU at once, on this one. Not within a recording.
void AfterWork(const Stream& stream, std::function<void(absl::Status)> then);

// A point in a stream's work. Thread-compatible.
class Event {
 public:
  explicit Event(Device device);
  void Record(const Stream& stream);
  // For MillisecondsSince alone, not for Wait: within a recorded graph
  // (core/graph.h) the time of each replay.
  void RecordTime(const Stream& stream);
  // Later work of `stream`, of any device, runs after the point.
  void Wait(const Stream& stream) const;
  bool HasEnded() const;
  void Synchronize() const;
  // Milliseconds from `earlier` to this one, both recorded and ended; on the
  // CPU between the calls of Record.
  double MillisecondsSince(const Event& earlier) const;

 private:
  void RequireDevice(const Stream& stream) const;

  Device device_;
  std::shared_ptr<void> handle_;
  int64_t host_nanoseconds_ = 0;
};

}  // namespace baton
