// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/snapshots.h"

#include <algorithm>
#include <utility>

namespace baton::rpc::internal {

void Snapshots::Take(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    reads_.push_back(std::make_shared<PendingRead>(tensor));
}

Snapshots::Pins Snapshots::Restore(std::vector<Tensor>& tensors) {
  Pins pins;
  for (Tensor& tensor : tensors) {
    const auto read = std::find_if(
        reads_.begin(), reads_.end(),
        [&](const auto& each) { return SameView(each->original(), tensor); });
    if (read == reads_.end()) continue;
    auto pin = (*read)->Pin();
    const bool written = pin.get() != &(*read)->original();
    // Only the message and the read have handles to the storage.
    if (!written && tensor.storage().use_count() == 2) {
      pin = nullptr;
      reads_.erase(read);
      continue;
    }
    tensor = *pin;
    pins.push_back(std::move(pin));
  }
  return pins;
}

}  // namespace baton::rpc::internal
