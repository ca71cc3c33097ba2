// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/failure_detector.h"

#include <algorithm>
#include <utility>

#include "rpc/worker.h"

namespace baton::rpc {
namespace {

using std::chrono::milliseconds;

constexpr int kSilentBeats = 4;
// The bound keeps a peer with a very short lease from keeping this end busy.
constexpr milliseconds kShortestBeat{10};
constexpr int kPatience = 2;

milliseconds BeatOf(milliseconds lease) {
  if (lease.count() <= 0) return milliseconds::max();
  // One more than the beats of silence, for the one that was just heard.
  return std::max(SilenceWithin(lease) / (kSilentBeats + 1), kShortestBeat);
}

}  // namespace

FailureDetector::FailureDetector(milliseconds own, milliseconds other,
                                 Clock::time_point now)
    : own_(own) {
  const milliseconds beat = std::min(BeatOf(own), BeatOf(other));
  if (beat == milliseconds::max()) return;
  interval_ = beat;
  due_ = now + beat;
}

FailureDetector::Clock::time_point FailureDetector::Next(Clock::time_point now,
                                                         uint64_t phase) {
  using std::chrono::nanoseconds;
  const auto interval = nanoseconds(interval_);
  const auto offset =
      nanoseconds(phase % static_cast<uint64_t>(interval.count()));
  const nanoseconds past = now.time_since_epoch() - offset;
  due_ = now + (interval - past % interval);
  // Without the extra time it would be silent by then.
  between_ = own_.count() > 0 && Left() <= forgiven_ && now + Left() < due_;
  if (between_) due_ = now + Left();
  return due_;
}

FailureDetector::Clock::duration FailureDetector::Left() const {
  return kSilentBeats * BeatOf(own_) - interval_ / 4 - unheard_ + forgiven_;
}

FailureDetector::Due FailureDetector::Beat(Clock::time_point now) {
  const Clock::duration lateness =
      std::max(now - due_, Clock::duration::zero());
  due_ = now + interval_;
  if (std::exchange(between_, false)) {
    // What was heard came after the last beat, so the next one counts it again.
    if (!heard_ && lateness <= interval_) return {.silent = true};
    unheard_ = milliseconds(0);
    forgiven_ = {};
    return {};
  }
  if (std::exchange(heard_, false) || lateness > interval_) {
    unheard_ = milliseconds(0);
    forgiven_ = {};
  } else {
    unheard_ += interval_;
    forgiven_ =
        std::min<Clock::duration>(forgiven_ + kPatience * lateness, own_ / 2);
  }
  return {.speak = !std::exchange(spoke_, false),
          .silent = own_.count() > 0 && Left() <= Clock::duration::zero()};
}

}  // namespace baton::rpc
