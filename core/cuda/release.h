// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/status.h"
#include "core/status.h"

namespace baton::cuda {

// Gives something of a device back where no error may be thrown, as where an
// owner ends. Where a thread has no device the runtime would take its first
// one, with a context there, for whatever it is asked; and the process may be
// ending.
template <typename Function>
void OnDevice(int device, const Function& release) {
  CatchErrors([&] {
    const DeviceScope scope(device);
    release();
  }).IgnoreError();
}

}  // namespace baton::cuda
