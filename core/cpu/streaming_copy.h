// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

namespace baton::cpu {

// Copies like memcpy, for another core to read. Copies that are too large to
// stay in the shared cache beside their source bypass it, so that the target is
// not read before it is written. A thread that sees what this thread writes
// next also sees all copied bytes. If the calling thread may use five compute
// threads or more, up to three threads of a pool help it with a large copy. Any
// alignment works; it is fastest if `to` is aligned to 64 bytes. Thread-safe.
//
// `together` is the number of bytes of all copies that this one is part of;
// they bypass the cache, or not, together.
void StreamingCopy(void* to, const void* from, size_t bytes,
                   size_t together = 0);

// Returns the number of bytes from which on copies bypass the cache: a quarter
// of it, at most 32 MB.
size_t StreamingCopyThreshold();

}  // namespace baton::cpu
