// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "rpc/plugin.h"

namespace baton::plugin {

// What a good plug-in would say of itself, but for what `spoil` does to it.
// Static: libraries of one process would share an inline function's `info`.
static const rpc::PluginInfo* Spoiled(void (*spoil)(rpc::PluginInfo&)) {
  static rpc::PluginInfo info =
      rpc::internal::ThisPlugin("wrong", [](rpc::Registry&) {});
  spoil(info);
  return &info;
}

}  // namespace baton::plugin
