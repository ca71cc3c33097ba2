// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/rpc/plugin/spoiled.h"

extern "C" const baton::rpc::PluginInfo* baton_plugin() {
  return baton::plugin::Spoiled([](auto& info) { info.layout = 1; });
}
