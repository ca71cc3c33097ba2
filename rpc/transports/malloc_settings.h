// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace baton::rpc {

// Makes malloc keep up to 256 MB of freed memory, for the whole process from
// the first call on. Otherwise the buffers that gRPC reads into would be
// returned to the system and faulted in again for each chunk of a tensor, which
// takes longer than reading it. Does nothing if the environment configures
// malloc (GLIBC_TUNABLES, MALLOC_...), or with another malloc than glibc's.
// Thread-safe.
void KeepFreedMemory();

}  // namespace baton::rpc
