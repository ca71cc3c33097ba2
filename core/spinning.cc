// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/spinning.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/log.h"

namespace baton {
namespace {

using std::chrono::microseconds;

// A wake-up takes 2 us where it is cheap and 25 us on virtual machines. What
// would come a little later than one looks on, comes sooner when one does: the
// other side saves a wake-up, too.
constexpr microseconds kLongest{50};
constexpr microseconds kSoon{150};
constexpr int kMostWorth = 8;

// With fewer cores somebody needs the one that looks on would hold; and who
// offers it to others while he looks on may not get it back for milliseconds.
constexpr int kLeastCores = 5;

bool HasCoresToSpare() {
  static const bool has = [] {
    if (const char* set = std::getenv("BATON_SPIN"); set != nullptr) {
      if (std::strcmp(set, "on") == 0) return true;
      if (std::strcmp(set, "off") == 0) return false;
      LogWarning("BATON_SPIN=", set, " means nothing; \"on\" and \"off\" do");
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof(set), &set) == 0 &&
           CPU_COUNT(&set) >= kLeastCores;
  }();
  return has;
}

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Spinning& Spinning::OfThisThread() {
  static thread_local Spinning spinning;
  return spinning;
}

void Spinning::Came() {
  const auto now = Clock::now();
  const bool soon = now - since_ < kSoon;
  worth_ = std::clamp(worth_ + (soon ? 1 : -1), 0, kMostWorth);
  since_ = now;
}

bool Spinning::Wait() {
  if (!HasCoresToSpare() || worth_ == 0) return false;
  if (Clock::now() - since_ > kLongest) return false;
  for (int i = 0; i < 8; ++i) Relax();
  return true;
}

}  // namespace baton
