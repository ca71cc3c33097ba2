// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// A context on a GPU takes hundreds of megabytes there, and CUDA makes one
// whenever a thread that has not chosen a device makes a call.
namespace baton::cuda {

// Returns whether this process has, or may have, a context on the device. A
// context that was seen once is assumed to stay: launches on a second GPU ask
// this each time.
bool MayHaveContext(int device);

// Returns a device for calls that concern no GPU, such as those for pinned
// memory: the thread's device if this process has a context there or nowhere,
// otherwise a device where it has one.
int DeviceWithContext();

}  // namespace baton::cuda
