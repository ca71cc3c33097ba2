// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream_use.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/executor.h"
#include "core/status.h"

namespace baton {
namespace {

constexpr std::chrono::seconds kPatience{60};

// The CPU's streams must not use GPU memory, because nothing could wait for
// them when the memory is reused: a GPU's stream copies it instead.
void RequireUser(const Stream& home, const Stream& stream) {
  Require(stream.device().is_cuda() || home.device().is_cpu(), "stream",
          "the CPU cannot use what lies on ", home.device().ToString(),
          ": copy it to the CPU");
}

}  // namespace

void OutsideRead::End() {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

bool OutsideRead::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void OutsideRead::Await() const {
  if (ended()) return;
  if (wanted_) wanted_();
  const BlockingScope waiting;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!changed_.WaitUntil(mutex_, deadline) && !ended_) {
      Fail("write", "another worker has not taken the tensor that it was sent",
           absl::StatusCode::kDeadlineExceeded);
    }
  }
}

StreamUse::User* StreamUse::FindReaderLocked(const Stream& stream) {
  const auto found =
      std::find_if(readers_.begin(), readers_.end(),
                   [&](const User& reader) { return reader.stream == stream; });
  return found == readers_.end() ? nullptr : &*found;
}

void StreamUse::Read(const Stream& stream) {
  RequireUser(home_, stream);
  MutexLock lock(mutex_);
  const Stream::Position position = stream.position();
  if (User* reader = FindReaderLocked(stream)) {
    reader->position = position;
    return;
  }
  if (stream == writer_.stream) {
    if (position == writer_.position) return;
  } else {
    stream.WaitFor(writer_.stream, writer_.position);
  }
  readers_.push_back({stream, position});
}

void StreamUse::ReadOutside(std::shared_ptr<const OutsideRead> read) {
  MutexLock lock(mutex_);
  std::erase_if(outside_, [](const auto& other) { return other->ended(); });
  outside_.push_back(std::move(read));
}

void StreamUse::AwaitOutside() {
  std::vector<std::shared_ptr<const OutsideRead>> outside;
  {
    MutexLock lock(mutex_);
    outside.swap(outside_);
  }
  for (const auto& read : outside) read->Await();
}

void StreamUse::Write(const Stream& stream) {
  RequireUser(home_, stream);
  AwaitOutside();
  MutexLock lock(mutex_);
  if (FindReaderLocked(stream) == nullptr)
    stream.WaitFor(writer_.stream, writer_.position);
  for (const User& reader : readers_)
    stream.WaitFor(reader.stream, reader.position);
  readers_.clear();
  writer_ = {stream, stream.position()};
}

void StreamUse::Extend(const Stream& stream) {
  MutexLock lock(mutex_);
  if (User* reader = FindReaderLocked(stream))
    reader->position = stream.position();
  if (writer_.stream == stream) writer_.position = stream.position();
}

std::vector<Stream> StreamUse::Guests() const {
  MutexLock lock(mutex_);
  std::vector<Stream> guests;
  for (const User& reader : readers_) {
    if (reader.stream != home_) guests.push_back(reader.stream);
  }
  const Stream& writer = writer_.stream;
  if (writer != home_ &&
      std::find(guests.begin(), guests.end(), writer) == guests.end())
    guests.push_back(writer);
  return guests;
}

}  // namespace baton
