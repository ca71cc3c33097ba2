// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "core/mutex.h"

namespace baton::dist {

// A directory that does not answer for this long is asked again later.
inline constexpr std::chrono::milliseconds kDirectoryMayBeLost{500};

// Whether the places of a line that agree are most of it, or half with the
// first. Any two quorums of a line have a place in common.
inline bool IsQuorum(const std::vector<bool>& agreed) {
  const auto size = static_cast<std::ptrdiff_t>(agreed.size());
  const auto count = std::count(agreed.begin(), agreed.end(), true);
  return 2 * count > size || (2 * count == size && (size == 0 || agreed[0]));
}

// Counts the places of a line that agree. Thread-safe.
class Tally {
 public:
  Tally(std::vector<bool> agreed, size_t asked)
      : agreed_(std::move(agreed)), left_(asked) {}
  void Begin() { SetIfOver(); }
  void Count(size_t place, const absl::Status& status) {
    {
      const MutexLock lock(mutex_);
      agreed_[place] = status.ok();
      --left_;
    }
    SetIfOver();
  }
  Future<void> quorum() const { return quorum_.future(); }

 private:
  void SetIfOver() {
    absl::Status result;
    {
      const MutexLock lock(mutex_);
      const bool agreed = IsQuorum(agreed_);
      if (over_ || (left_ > 0 && !agreed)) return;
      over_ = true;
      if (!agreed) {
        result = absl::UnavailableError(
            absl::StrCat("of ", agreed_.size(), " directories too few agree"));
      }
    }
    quorum_.Set(result);
  }

  Mutex mutex_;
  std::vector<bool> agreed_ ABSL_GUARDED_BY(mutex_);
  size_t left_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  const Promise<void> quorum_;
};

// Done when those that have agreed are a quorum with those that are asked;
// Unavailable when all have answered and are none.
inline Future<void> WhenQuorum(const std::vector<bool>& agreed,
                               const std::map<size_t, Future<void>>& asked) {
  const auto tally = std::make_shared<Tally>(agreed, asked.size());
  tally->Begin();
  for (const auto& asking : asked) {
    asking.second.OnReady(
        [tally, place = asking.first](const absl::Status& status) {
          tally->Count(place, status);
        });
  }
  return tally->quorum();
}

}  // namespace baton::dist
