// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// A context on a GPU takes hundreds of megabytes there, and CUDA makes one
// wherever a thread without a device of its own asks for anything.
namespace baton::cuda {

// Whether this process has a context there, or may have one. One that was seen
// is taken to stay: launches on a second GPU ask this each time.
bool MayHaveContext(int device);

// For what belongs to no GPU, such as pinned memory: the thread's device, or
// else one where this process has a context already; the thread's where there
// is none at all.
int DeviceWithContext();

}  // namespace baton::cuda
