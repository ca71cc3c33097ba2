// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton::rpc {

// Has malloc keep up to 256 MB of what is freed, for the whole process and from
// the first call on: what gRPC reads would otherwise be given back to the
// system and faulted in again for each chunk of a tensor, which takes longer
// than to read it. Not where the environment says how malloc behaves
// (GLIBC_TUNABLES, MALLOC_...), nor with another malloc than glibc's.
// Thread-safe.
void KeepFreedMemory();

}  // namespace baton::rpc
