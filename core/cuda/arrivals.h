// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "core/stream.h"
#include "core/tensor.h"

// Tensors of a GPU whose elements are read or written by work that no stream of
// this library knows. core/no_cuda has the same symbols. All throw Error for
// what the device reports.
namespace baton::cuda {

// Whether what has been given by now to write the tensor has ended, or the
// device has failed: to be asked on any thread, again and again until it has.
absl::AnyInvocable<bool()> WhenWritten(const Tensor& tensor);

// A tensor that is to be written, until its elements are there. It opens once,
// by the first of Came, Lost and its end. Thread-safe.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // Whoever uses the tensor goes on.
  virtual void Came() = 0;
  // So they do, and find all bits set: no number where it has any. Waits for
  // the device; nobody else writes the tensor any more.
  virtual void Lost() = 0;
};

// A stream that such tensors are written on, as far as their users see. They
// may be used at once, like any that is being written, and may come in any
// order; but users wait for all that were expected before theirs. Thread-safe.
class ArrivalLane {
 public:
  virtual ~ArrivalLane() = default;
  // Of memory that nothing uses, and that was made on another stream, which
  // does not wait for this one. It stays until it has come or is lost.
  virtual std::unique_ptr<Arrival> Expect(const Tensor& target) = 0;
};
std::shared_ptr<ArrivalLane> MakeArrivalLane(const Stream& stream);

}  // namespace baton::cuda
