// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/stream_use.h"

#include <algorithm>

namespace baton {

bool StreamUse::KnowsLocked(const Stream& stream) const {
  return stream == writer_ ||
         std::find(readers_.begin(), readers_.end(), stream) != readers_.end();
}

void StreamUse::Read(const Stream& stream) {
  MutexLock lock(mutex_);
  if (KnowsLocked(stream)) return;
  stream.WaitFor(writer_);
  readers_.push_back(stream);
}

void StreamUse::Write(const Stream& stream) {
  MutexLock lock(mutex_);
  if (!KnowsLocked(stream)) stream.WaitFor(writer_);
  for (const Stream& reader : readers_) stream.WaitFor(reader);
  readers_.clear();
  writer_ = stream;
}

std::vector<Stream> StreamUse::Guests() const {
  MutexLock lock(mutex_);
  std::vector<Stream> guests = readers_;
  if (writer_ != home_) guests.push_back(writer_);
  guests.erase(std::remove(guests.begin(), guests.end(), home_), guests.end());
  return guests;
}

}  // namespace baton
