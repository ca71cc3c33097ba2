// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/malloc_settings.h"

#include <malloc.h>

#include <cstdlib>
#include <initializer_list>

namespace baton::rpc {
namespace {

#if defined(__GLIBC__)
bool EnvironmentDecides() {
  for (const char* name : {"GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_",
                           "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}
#endif

}  // namespace

void KeepFreedMemory() {
#if defined(__GLIBC__)
  // Larger blocks are returned at once; gRPC's have at most 4 MB.
  static const bool done = !EnvironmentDecides() &&
                           mallopt(M_MMAP_THRESHOLD, 8 << 20) == 1 &&
                           mallopt(M_TRIM_THRESHOLD, 256 << 20) == 1;
  (void)done;
#endif
}

}  // namespace baton::rpc
