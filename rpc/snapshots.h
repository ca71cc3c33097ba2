// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "core/pending_read.h"
#include "core/tensor.h"

namespace baton::rpc::internal {

// The tensors of a message that cannot leave yet, with the elements that they
// have when they are taken. Copies are of the same reads. Thread-compatible.
class Snapshots {
 public:
  // Once.
  void Take(const std::vector<Tensor>& tensors);

  using Pins = std::vector<std::shared_ptr<const Tensor>>;
  // Puts what was taken in the place of the same tensors. The elements stay
  // while the pins are held: until the message is with the transport. What
  // nobody else has a handle to by now is left alone, to be sent as it is.
  Pins Restore(std::vector<Tensor>& tensors);

 private:
  std::vector<std::shared_ptr<PendingRead>> reads_;
};

}  // namespace baton::rpc::internal
