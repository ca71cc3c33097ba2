// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::cpu {

// Returns what zlib's crc32_z does. It is several times as fast where the
// processor multiplies polynomials; zlib would take as long for the sum as a
// disk for the bytes.
uint32_t Crc32(uint32_t before, const void* data, size_t bytes);

}  // namespace baton::cpu
