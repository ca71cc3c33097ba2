// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/mutex.h"
#include "core/stream_use.h"
#include "core/tensor.h"

namespace baton {

// A tensor whose elements are read after the call that it was given to has
// returned, as those of a message on its way are. The reader gets the elements
// that the tensor had at the beginning: whoever writes them in place first
// moves the read to a copy (Storage::PrepareWrite). Nothing is copied where
// nobody writes. Thread-safe.
class PendingRead {
 public:
  explicit PendingRead(const Tensor& tensor);
  ~PendingRead();  // after its pins
  PendingRead(const PendingRead&) = delete;
  PendingRead& operator=(const PendingRead&) = delete;

  // The tensor or the copy of it. While this is held the elements stay, and who
  // wants to write them waits.
  std::shared_ptr<const Tensor> Pin() const;
  // As it was given, whose elements may have been written since.
  const Tensor& original() const { return original_; }

 private:
  friend class Storage;
  // Later pins are of the copy. The result ends with the last earlier one.
  std::shared_ptr<const OutsideRead> MoveTo(Tensor copy);

  const Tensor original_;
  const std::shared_ptr<OutsideRead> read_ = std::make_shared<OutsideRead>();
  mutable Mutex mutex_;
  std::shared_ptr<const Tensor> source_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
