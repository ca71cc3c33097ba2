// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <vector>

#include "core/pending_read.h"
#include "core/tensor.h"

namespace baton::rpc::internal {

// Keeps the elements that the tensors of a message have now, for a message that
// cannot be sent yet. Copies share the same pending reads. Thread-compatible.
class Snapshots {
 public:
  // To be called once.
  void Take(const std::vector<Tensor>& tensors);

  using Pins = std::vector<std::shared_ptr<const Tensor>>;
  // Replaces each tensor that was taken by its kept elements. The caller must
  // hold the pins until the transport has the message. A tensor to which
  // nothing else has a handle any more is left as it is.
  Pins Restore(std::vector<Tensor>& tensors);

 private:
  std::vector<std::shared_ptr<PendingRead>> reads_;
};

}  // namespace baton::rpc::internal
