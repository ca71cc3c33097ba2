// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "rpc/channels/segment.h"

namespace baton::rpc {

// 4 KB at the beginning of a segment, with which two processes check that both
// have mapped the same memory: the maker writes them, the other one checks and
// reverses them, and the maker checks that.
void WritePattern(const Segment& segment, uint64_t seed);
void TurnPattern(const Segment& segment);
// Returns whether the pattern, or its reverse, is there.
bool HasPattern(const Segment& segment, uint64_t seed, bool reversed);

}  // namespace baton::rpc
