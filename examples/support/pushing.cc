// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/pushing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

absl::StatusOr<double> PushesPerSecond(int64_t pushes,
                                       absl::FunctionRef<absl::Status()> push) {
  constexpr int64_t kWarmUp = 5;
  auto begin = Clock::now();
  for (int64_t i = 0; i < pushes + kWarmUp; ++i) {
    if (i == kWarmUp) begin = Clock::now();
    RETURN_IF_ERROR(push());
  }
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  return static_cast<double>(pushes) / seconds.count();
}

double MemcpyBytesPerSecond(size_t bytes) {
  constexpr size_t kTimes = 9;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> seconds;
  while (seconds.size() < kTimes) {
    const auto begin = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
    BATON_CHECK(to == from);  // so that the compiler cannot drop the copy
  }
  std::nth_element(seconds.begin(), seconds.begin() + kTimes / 2,
                   seconds.end());
  return static_cast<double>(bytes) / seconds[kTimes / 2];
}

Measurement PushMeasurement(const std::string& variant, int64_t servers,
                            int64_t trainers, int64_t pushes,
                            const PushFigures& figures) {
  const double rate = figures.pushes_per_s;
  const double gigabytes = 1e-9 * static_cast<double>(figures.bytes);
  Measurement measurement{
      .variant = variant,
      .items = pushes * trainers,
      .seconds = {static_cast<double>(pushes * trainers) / rate},
      .details = {{"servers", servers},
                  {"trainers", trainers},
                  // Both directions.
                  {"gb_per_s", 2 * rate * gigabytes},
                  {"memcpy_gb_per_s", 1e-9 * figures.memcpy_bytes_per_s}},
      .item = "pushes"};
  if (figures.pushes_alone_per_s)
    measurement.details.push_back(
        {"push_gb_per_s", *figures.pushes_alone_per_s * gigabytes});
  if (figures.pulls_alone_per_s)
    measurement.details.push_back(
        {"pull_gb_per_s", *figures.pulls_alone_per_s * gigabytes});
  return measurement;
}

std::string FormatPushing(const Measurement& measurement) {
  const std::pair<const char*, const char*> kShown[] = {
      {"gb_per_s", "both ways"},
      {"push_gb_per_s", "pushes alone"},
      {"pull_gb_per_s", "pulls alone"},
      {"memcpy_gb_per_s", "memcpy"}};
  std::string line = absl::StrCat(measurement.variant, ": GB/s");
  const char* separator = " ";
  for (const auto& [name, words] : kShown) {
    for (const Detail& detail : measurement.details) {
      if (detail.name != name) continue;
      absl::StrAppendFormat(&line, "%s%s %.2f", std::exchange(separator, ", "),
                            words, std::get<double>(detail.value));
    }
  }
  return line + "\n";
}

}  // namespace baton::examples
