// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "core/mutex.h"
#include "core/stream_use.h"
#include "core/tensor.h"

namespace baton {

// A tensor whose elements are read after the call that it was passed to has
// returned, such as the elements of a message being sent. The reader gets the
// elements as they were at the beginning: a writer first moves the read to a
// copy (Storage::PrepareWrite). Nothing is copied if nobody writes.
// Thread-safe.
class PendingRead {
 public:
  explicit PendingRead(const Tensor& tensor);
  ~PendingRead();  // all pins must be released before
  PendingRead(const PendingRead&) = delete;
  PendingRead& operator=(const PendingRead&) = delete;

  // Returns the tensor or its copy. While the result is held, the elements do
  // not change, and writers wait.
  std::shared_ptr<const Tensor> Pin() const;
  // The tensor as it was passed; its elements may have been overwritten.
  const Tensor& original() const { return original_; }

 private:
  friend class Storage;
  // Makes later pins use `copy`. The result ends when the last earlier pin is
  // released.
  std::shared_ptr<const OutsideRead> MoveTo(Tensor copy);

  const Tensor original_;
  const std::shared_ptr<OutsideRead> read_ = std::make_shared<OutsideRead>();
  mutable Mutex mutex_;
  std::shared_ptr<const Tensor> source_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton
