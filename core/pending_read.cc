// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/pending_read.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/graph.h"

namespace baton {
namespace {

struct Copy {
  Tensor of;
  Tensor copy = {};
};

// Several messages may contain the same tensor.
Copy* Find(std::vector<Copy>& copies, const Tensor& tensor) {
  const auto found =
      std::find_if(copies.begin(), copies.end(),
                   [&](const Copy& copy) { return SameView(copy.of, tensor); });
  return found == copies.end() ? nullptr : &*found;
}

}  // namespace

PendingRead::PendingRead(const Tensor& tensor)
    : original_(tensor),
      source_(&original_, [read = read_](const Tensor*) { read->End(); }) {
  original_.storage()->BeginRead(this);
}

PendingRead::~PendingRead() { original_.storage()->EndRead(this); }

std::shared_ptr<const Tensor> PendingRead::Pin() const {
  MutexLock lock(mutex_);
  return source_;
}

std::shared_ptr<const OutsideRead> PendingRead::MoveTo(Tensor copy) {
  auto source = std::make_shared<const Tensor>(std::move(copy));
  MutexLock lock(mutex_);
  source_.swap(source);
  return read_;
}

void Storage::BeginRead(PendingRead* read) {
  MutexLock lock(reads_mutex_);
  reads_.push_back(read);
  CountReadsLocked();
}

void Storage::EndRead(PendingRead* read) {
  MutexLock lock(reads_mutex_);
  std::erase(reads_, read);
  CountReadsLocked();
}

void Storage::CountReadsLocked() {
  std::erase_if(moved_reads_, [](const auto& read) { return read->ended(); });
  pending_reads_.store(reads_.size() + moved_reads_.size(),
                       std::memory_order_release);
}

// Elements are copied without the lock, which reads need to begin and end.
// Other writers also find the moved reads until their pins are released. While
// an element is pinned, another read of it may begin, hence the loop.
void Storage::MoveReads() {
  // Recorded work writes only when it is replayed.
  if (device_.is_cuda() && Graph::IsRecording()) return;
  while (pending_reads_.load(std::memory_order_acquire) != 0) {
    std::vector<Copy> copies;
    {
      MutexLock lock(reads_mutex_);
      for (const PendingRead* read : reads_) {
        if (Find(copies, read->original()) == nullptr)
          copies.push_back({read->original()});
      }
    }
    for (Copy& copy : copies) copy.copy = copy.of.Clone();
    std::vector<std::shared_ptr<const OutsideRead>> moved;
    {
      MutexLock lock(reads_mutex_);
      std::vector<PendingRead*> begun_since;
      for (PendingRead* read : reads_) {
        if (const Copy* copy = Find(copies, read->original())) {
          moved_reads_.push_back(read->MoveTo(copy->copy));
        } else {
          begun_since.push_back(read);
        }
      }
      reads_ = std::move(begun_since);
      moved = moved_reads_;
    }
    for (const auto& read : moved) read->Await();
    MutexLock lock(reads_mutex_);
    CountReadsLocked();
  }
}

}  // namespace baton
