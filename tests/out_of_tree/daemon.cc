// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Loads the plug-ins named and lists what it would serve.

#include <cstdio>

#include "baton/rpc/plugin.h"

int main(int argc, char** argv) {
  baton::rpc::Registry registry;
  for (int i = 1; i < argc; ++i) {
    const absl::Status loaded = baton::rpc::LoadPlugin(argv[i], registry);
    if (!loaded.ok()) {
      std::printf("%s\n", loaded.ToString().c_str());
      return 1;
    }
  }
  for (const std::string& name : registry.MethodNames())
    std::printf("%s\n", name.c_str());
  return 0;
}
