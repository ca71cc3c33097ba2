// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda/stream.h"
#include "core/mutex.h"
#include "core/status.h"

namespace baton {
namespace {

constexpr int kMaxDevices = 64;

void RequireIndex(Device device) {
  Require(device.index() >= 0 && device.index() < kMaxDevices, "stream",
          device.ToString(), " is beyond the ", kMaxDevices,
          " devices that are supported");
}

// Numbers the threads that use GPUs: each gets the lowest free number, so that
// memory which an allocator keeps for a stream's next request is reused.
class ThreadNumbers {
 public:
  int Take() {
    MutexLock lock(mutex_);
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    if (free == taken_.end()) {
      taken_.push_back(true);
      return static_cast<int>(taken_.size()) - 1;
    }
    *free = true;
    return static_cast<int>(free - taken_.begin());
  }
  void Give(int number) {
    MutexLock lock(mutex_);
    taken_[static_cast<size_t>(number)] = false;
  }

 private:
  Mutex mutex_;
  std::vector<bool> taken_ ABSL_GUARDED_BY(mutex_);
};

ThreadNumbers& Numbers() {
  // Never destroyed, because threads may outlive main.
  static auto* const numbers = new ThreadNumbers;
  return *numbers;
}

// The streams of each GPU that stand for streams which a user owns.
class AdoptedStreams {
 public:
  int Take(Device device, void* cuda_stream) {
    MutexLock lock(mutex_);
    Taken& taken = taken_[static_cast<size_t>(device.index())];
    const auto free = std::find(taken.begin(), taken.end(), false);
    if (free == taken.end()) {
      Fail("stream",
           absl::StrCat(taken.size(), " streams of ", device.ToString(),
                        " are adopted: release one"),
           absl::StatusCode::kResourceExhausted);
    }
    const int index =
        cuda::kFirstAdopted + static_cast<int>(free - taken.begin());
    cuda::Adopt(device.index(), index, cuda_stream);
    *free = true;
    return index;
  }
  void Give(Device device, int index) {
    MutexLock lock(mutex_);
    const bool adopted =
        device.is_cuda() && index >= cuda::kFirstAdopted &&
        taken_[static_cast<size_t>(device.index())]
              [static_cast<size_t>(index - cuda::kFirstAdopted)];
    Require(adopted, "stream", "only an adopted stream can be released");
    cuda::Disown(device.index(), index);
    taken_[static_cast<size_t>(device.index())]
          [static_cast<size_t>(index - cuda::kFirstAdopted)] = false;
  }

 private:
  using Taken = std::array<bool, cuda::kAdoptedStreams>;
  Mutex mutex_;
  std::array<Taken, kMaxDevices> taken_ ABSL_GUARDED_BY(mutex_) = {};
};

AdoptedStreams& Adopted() {
  static auto* const adopted = new AdoptedStreams;
  return *adopted;
}

// The initial stream of a thread, on every GPU. Beyond kThreadStreams threads,
// some share one.
class OwnStream {
 public:
  OwnStream() : number_(getpid() == gettid() ? -1 : Numbers().Take()) {}
  ~OwnStream() {
    if (number_ >= 0) Numbers().Give(number_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  int index() const {
    return number_ < 0
               ? 0
               : 1 + cuda::kDealtStreams + number_ % cuda::kThreadStreams;
  }

 private:
  const int number_;
};

// For each GPU, the index of the current stream plus 1; 0 means the thread's
// own. Has no destructor, because tensors may be destroyed while the thread
// ends.
thread_local std::array<int, kMaxDevices> current = {};

int& CurrentOf(Device device) {
  return current[static_cast<size_t>(device.index())];
}

std::atomic<bool> use_companions{true};

int64_t HostNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Stream Stream::Default(Device device) { return Stream(device, 0); }

Stream Stream::Next(Device device) {
  if (device.is_cpu()) return Default(device);
  RequireIndex(device);
  static std::array<std::atomic<uint32_t>, kMaxDevices> dealt = {};
  const uint32_t turn = dealt[static_cast<size_t>(device.index())]++;
  return Stream(device, 1 + static_cast<int>(turn % cuda::kDealtStreams));
}

Stream Stream::Beside(const Stream& stream) {
  if (stream.device_.is_cpu() || stream.index_ >= cuda::kStreams ||
      !use_companions)
    return stream;
  return Stream(stream.device_,
                cuda::kStreams + cuda::kCopyStreams + stream.index_);
}

void Stream::UseCompanions(bool use) { use_companions = use; }

Stream Stream::ForCopies(Device from, Device to) {
  const Device device = to.is_cuda() ? to : from;
  if (device.is_cpu()) return Default(device);
  // One stream for each source GPU, and one for each direction between GPU and
  // host.
  const int stream = from.is_cpu() ? 0 : to.is_cpu() ? 1 : 2 + from.index();
  return Stream(device, cuda::kStreams + stream % cuda::kCopyStreams);
}

Stream Stream::ForCollectives(Device device) {
  if (device.is_cpu()) return Default(device);
  RequireIndex(device);
  static std::array<std::atomic<uint32_t>, kMaxDevices> dealt = {};
  const uint32_t turn = dealt[static_cast<size_t>(device.index())]++;
  return Stream(device, cuda::kFirstCollective +
                            static_cast<int>(turn % cuda::kCollectiveStreams));
}

Stream Stream::Adopt(Device device, void* cuda_stream) {
  Require(device.is_cuda(), "stream", device.ToString(),
          " has no stream to adopt: its work has ended when a call returns");
  RequireIndex(device);
  return Stream(device, Adopted().Take(device, cuda_stream));
}

void Stream::Release() const { Adopted().Give(device_, index_); }

void Stream::Synchronize() const {
  if (device_.is_cuda()) cuda::SynchronizeStream(device_.index(), index_);
}

void AfterWork(const Stream& stream, std::function<void(absl::Status)> then) {
  if (stream.device().is_cpu()) return then(absl::OkStatus());
  cuda::CallAfter(stream.device().index(), stream.index(), std::move(then));
}

void Stream::WaitFor(const Stream& other) const {
  if (device_.is_cpu()) {
    other.Synchronize();
  } else if (other.device_.is_cuda() && *this != other) {
    cuda::WaitForStream(device_.index(), index_, other.device_.index(),
                        other.index_);
  }
}

Stream::Position Stream::position() const {
  return device_.is_cuda() ? cuda::StreamPosition(device_.index(), index_) : 0;
}

void Stream::WaitFor(const Stream& other, Position position) const {
  if (device_.is_cpu()) {
    other.Synchronize();
  } else if (other.device_.is_cuda() && *this != other) {
    cuda::WaitForStream(device_.index(), index_, other.device_.index(),
                        other.index_, position);
  }
}

Stream CurrentStream(Device device) {
  if (device.is_cpu()) return Stream::Default(device);
  RequireIndex(device);
  int& chosen = CurrentOf(device);
  if (chosen == 0) {
    thread_local const OwnStream own;
    chosen = own.index() + 1;
  }
  return Stream(device, chosen - 1);
}

StreamScope::StreamScope(const Stream& stream)
    : former_(CurrentStream(stream.device())) {
  if (stream.device().is_cuda())
    CurrentOf(stream.device()) = stream.index() + 1;
}

StreamScope::~StreamScope() {
  if (former_.device().is_cuda())
    CurrentOf(former_.device()) = former_.index() + 1;
}

void Synchronize(Device device) {
  if (device.is_cuda()) cuda::SynchronizeDevice(device.index());
}

Event::Event(Device device)
    : device_(device),
      handle_(device.is_cuda() ? cuda::MakeEvent(device.index()) : nullptr) {}

void Event::Record(const Stream& stream) {
  RequireDevice(stream);
  host_nanoseconds_ = HostNanoseconds();
  if (handle_)
    cuda::RecordEvent(handle_.get(), device_.index(), stream.index());
}

void Event::RecordTime(const Stream& stream) {
  RequireDevice(stream);
  host_nanoseconds_ = HostNanoseconds();
  if (handle_)
    cuda::RecordEventTime(handle_.get(), device_.index(), stream.index());
}

void Event::RequireDevice(const Stream& stream) const {
  Require(stream.device() == device_, "event", "made for ", device_.ToString(),
          ", recorded on a stream of ", stream.device().ToString());
}

void Event::Wait(const Stream& stream) const {
  if (!handle_) return;
  if (stream.device().is_cpu()) {
    Synchronize();
  } else {
    cuda::WaitForEvent(handle_.get(), stream.device().index(), stream.index());
  }
}

bool Event::HasEnded() const {
  return !handle_ || cuda::EventHasEnded(handle_.get());
}

void Event::Synchronize() const {
  if (handle_) cuda::SynchronizeEvent(handle_.get());
}

double Event::MillisecondsSince(const Event& earlier) const {
  if (!handle_ || !earlier.handle_)
    return static_cast<double>(host_nanoseconds_ - earlier.host_nanoseconds_) *
           1e-6;
  return cuda::MillisecondsBetween(earlier.handle_.get(), handle_.get());
}

}  // namespace baton
