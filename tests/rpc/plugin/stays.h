// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace baton::plugin {

// Never returns, and aborts a process that destroys its static objects before
// it has ended.
inline void Stay() {
  struct InUse {
    ~InUse() { std::abort(); }
  };
  static const InUse in_use;
  std::puts("this handler stays");
  std::fflush(stdout);
  for (;;) ::pause();
}

}  // namespace baton::plugin
