// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/spinning.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/time/time.h"
#include "core/log.h"

namespace baton {
namespace {

using std::chrono::microseconds;

// Waking a thread takes 2 us if it is cheap and 45 us on large virtual
// machines. Two sides that answer each other must spin for as long as an answer
// takes when both were asleep. Otherwise they sleep every time: each answers a
// little later than the other spins, and no wake-up is saved. With many cores
// an answer may take half a millisecond: a push to a parameter server, say.
constexpr microseconds kLong{150}, kLonger{1000};
constexpr int kManyCores = 16;
// An early result saves a wake-up; a late one costs as much time as many
// wake-ups. So it pays from this many early ones on for each late one.
constexpr int kWorthOfLate = 8;
constexpr int kMostWorth = 2 * kWorthOfLate;

// With fewer cores, other threads need the core that the spinning one occupies;
// if it yields the core, it may not get it back for milliseconds.
constexpr int kLeastCores = 5;

int Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

microseconds FindLimit() {
  const int cores = Cores();
  const microseconds fit = cores >= kManyCores ? kLonger : kLong;
  const microseconds never{0};
  if (const char* set = std::getenv("BATON_SPIN"); set != nullptr) {
    if (std::strcmp(set, "on") == 0) return fit;
    if (std::strcmp(set, "off") == 0) return never;
    absl::Duration time;
    if (absl::ParseDuration(set, &time) && time > absl::ZeroDuration())
      return absl::ToChronoMicroseconds(time);
    LogWarning("BATON_SPIN=", set,
               " means nothing; \"on\", \"off\" and times as \"2ms\" do");
  }
  return cores >= kLeastCores ? fit : never;
}

// The longest time to spin; 0: never.
microseconds Limit() {
  static const microseconds limit = FindLimit();
  return limit;
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
  const bool soon = now - since_ < Limit();
  worth_ = std::clamp(worth_ + (soon ? 1 : -kWorthOfLate), 0, kMostWorth);
  since_ = now;
}

bool Spinning::Wait() {
  if (worth_ < kWorthOfLate || Clock::now() - since_ > Limit()) return false;
  for (int i = 0; i < 8; ++i) Relax();
  return true;
}

}  // namespace baton
