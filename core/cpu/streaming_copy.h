// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

namespace baton::cpu {

// What memcpy does, for another core to read: bytes that would not stay in the
// shared cache beside their source go past it, so that they are not read before
// they are written. All of them are visible to whoever sees what this thread
// writes next. Where this thread may use five compute threads or more, up to
// four of them share what is large. Any alignment; fastest where `to` is
// aligned to 64 bytes. Thread-safe.
//
// `together`: the bytes of all copies of which this is one, where it is; they
// go past the cache, or not, together.
void StreamingCopy(void* to, const void* from, size_t bytes,
                   size_t together = 0);

// From how many bytes on they go past the cache: a quarter of it, 32 MB at
// most.
size_t StreamingCopyThreshold();

}  // namespace baton::cpu
