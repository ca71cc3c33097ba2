// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::cpu {

// zlib's crc32_z, several times as fast where the processor multiplies
// polynomials: a disk takes no longer for the bytes than zlib for their sum.
uint32_t Crc32(uint32_t before, const void* data, size_t bytes);

}  // namespace baton::cpu
