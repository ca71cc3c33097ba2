// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream.h"

#include <array>
#include <atomic>
#include <chrono>

#include "core/cuda/stream.h"
#include "core/status.h"

namespace baton {
namespace {

constexpr int kMaxDevices = 64;

void RequireIndex(Device device) {
  Require(device.index() >= 0 && device.index() < kMaxDevices, "stream",
          device.ToString(), " is beyond the ", kMaxDevices,
          " devices that are supported");
}

// Index of the current stream of each GPU.
thread_local std::array<int, kMaxDevices> current = {};

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
  return Stream(device, 1 + static_cast<int>(turn % (cuda::kStreams - 1)));
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
  // A lane for each source, and one for each direction to and from the host.
  const int lane = from.is_cpu() ? 0 : to.is_cpu() ? 1 : 2 + from.index();
  return Stream(device, cuda::kStreams + lane % cuda::kCopyStreams);
}

void Stream::Synchronize() const {
  if (device_.is_cuda()) cuda::SynchronizeStream(device_.index(), index_);
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
  Stream stream = Stream::Default(device);
  stream.index_ = current[static_cast<size_t>(device.index())];
  return stream;
}

StreamScope::StreamScope(const Stream& stream)
    : former_(CurrentStream(stream.device())) {
  if (stream.device().is_cuda())
    current[static_cast<size_t>(stream.device().index())] = stream.index();
}

StreamScope::~StreamScope() {
  if (former_.device().is_cuda())
    current[static_cast<size_t>(former_.device().index())] = former_.index();
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
