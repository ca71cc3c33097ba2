// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/wait_notice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/log.h"

namespace baton::rpc {

WaitNotice::WaitNotice(std::string subject, std::string what,
                       Clock::time_point deadline, Times times)
    : subject_(std::move(subject)),
      deadline_(deadline),
      times_(std::move(times)),
      what_(std::move(what)),
      timer_("baton-wait") {
  timer_.After(times_.first, [this] { Say(); });
}

WaitNotice::~WaitNotice() { timer_.Stop(); }

void WaitNotice::Now(std::string what) {
  MutexLock lock(mutex_);
  what_ = std::move(what);
}

void WaitNotice::Say() {
  std::string what;
  {
    MutexLock lock(mutex_);
    what = what_;
  }
  const auto left =
      std::chrono::ceil<std::chrono::seconds>(deadline_ - Clock::now());
  if (left.count() <= 0) return;
  const std::string text = absl::StrCat(
      subject_, " ", what, "; it gives up in ", left.count(), " s");
  if (times_.say != nullptr) {
    times_.say(text);
  } else {
    LogWarning(text);
  }
  timer_.After(times_.again, [this] { Say(); });
}

}  // namespace baton::rpc
