// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "rpc/channels/segment.h"

namespace baton::rpc {

// 4 KB at the beginning of a segment by which two processes find out that both
// have mapped the same memory: who made it writes them, the other one checks
// and turns them over, and who made it checks that.
void WritePattern(const Segment& segment, uint64_t seed);
void TurnPattern(const Segment& segment);
// Whether the pattern is there, and, once it is turned over, its reverse.
bool HasPattern(const Segment& segment, uint64_t seed, bool reversed);

}  // namespace baton::rpc
