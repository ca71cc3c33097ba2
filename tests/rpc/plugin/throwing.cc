// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/status.h"
#include "rpc/plugin.h"

namespace baton::plugin {
namespace {

void Throw(rpc::Registry&) { Fail("throwing", "no weights found"); }

}  // namespace
}  // namespace baton::plugin

BATON_PLUGIN("throwing", baton::plugin::Throw);
