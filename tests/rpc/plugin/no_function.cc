// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/plugin.h"

namespace {

void AddNothing(baton::rpc::Registry&) {}

}  // namespace

extern "C" const baton::rpc::PluginInfo* baton_plugin() {
  static baton::rpc::PluginInfo info =
      baton::rpc::internal::ThisPlugin("wrong", AddNothing);
  info.add = nullptr;
  return &info;
}
