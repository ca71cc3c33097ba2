// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/precision.h"

#include <atomic>

namespace baton {
namespace {

std::atomic<bool> tf32_allowed{false};
std::atomic<bool> deterministic_only{false};

}  // namespace

void AllowTf32(bool allow) { tf32_allowed = allow; }
bool Tf32Allowed() { return tf32_allowed; }

void SetDeterministic(bool deterministic) {
  deterministic_only = deterministic;
}
bool Deterministic() { return deterministic_only; }

}  // namespace baton
