// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/progress.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton::examples {
namespace {

constexpr std::chrono::milliseconds kTerminalPace{200};
constexpr std::chrono::seconds kPlainPace{10};

}  // namespace

Progress::Progress(std::string label, std::string items, int64_t steps,
                   std::FILE* out)
    : label_(std::move(label)),
      items_(std::move(items)),
      steps_(steps),
      out_(out),
      terminal_(isatty(fileno(out)) != 0),
      begin_(Clock::now()),
      shown_(begin_) {}

Progress::~Progress() {
  if (open_line_) std::fputc('\n', out_);
}

void Progress::Step(double loss, int64_t items) {
  ++done_;
  gone_through_ += items;
  const Clock::time_point now = Clock::now();
  const bool last = done_ == steps_;
  const bool due = now - shown_ >= (terminal_ ? Clock::duration(kTerminalPace)
                                              : Clock::duration(kPlainPace));
  if (!last && !due && done_ != 1) return;
  shown_ = now;
  Show(Line(loss, std::chrono::duration<double>(now - begin_).count()));
}

std::string Progress::Line(double loss, double seconds) const {
  const double left = seconds / static_cast<double>(done_) *
                      static_cast<double>(steps_ - done_);
  return absl::StrFormat(
      "%s  step %d/%d  loss %.4f  %.1f %s/s  %s", label_, done_, steps_, loss,
      static_cast<double>(gone_through_) / seconds, items_,
      done_ == steps_ ? FormatDuration(seconds)
                      : absl::StrCat(FormatDuration(left), " left"));
}

void Progress::Show(const std::string& line) {
  if (terminal_) {
    std::fprintf(out_, "\r\033[K%s", line.c_str());
    open_line_ = true;
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
}

std::string FormatDuration(double seconds) {
  if (seconds < 60) return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) {
    return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  }
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

}  // namespace baton::examples
