// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/shown_time.h"

#include "absl/strings/str_cat.h"

namespace baton {

std::string ShownTime(std::chrono::milliseconds time) {
  using std::chrono::seconds;
  if (time < seconds(1)) return absl::StrCat(time.count(), " ms");
  return absl::StrCat(std::chrono::duration<double>(time).count(), " s");
}

}  // namespace baton
