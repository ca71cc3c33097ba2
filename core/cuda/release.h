// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/cuda/status.h"
#include "core/status.h"

namespace baton::cuda {

// Releases something of a device where no error may be thrown, such as in a
// destructor. If a thread has chosen no device, the runtime would use the first
// one, and make a context there, for any call; and the process may be ending.
template <typename Function>
void OnDevice(int device, const Function& release) {
  CatchErrors([&] {
    const DeviceScope scope(device);
    release();
  }).IgnoreError();
}

}  // namespace baton::cuda
