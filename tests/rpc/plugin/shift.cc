// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/plugin.h"

namespace baton::plugin {
namespace {

float Shift(float x) { return x + 1; }

void AddShift(rpc::Registry& registry) { registry.AddFunction<&Shift>(); }

}  // namespace
}  // namespace baton::plugin

BATON_PLUGIN("shift", baton::plugin::AddShift);
