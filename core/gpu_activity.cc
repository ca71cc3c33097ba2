// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/gpu_activity.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace baton {
namespace {

constexpr size_t kLongestName = 120;
// Over a shorter time, the ratio of two clocks cannot be determined.
constexpr int64_t kShortestRun = 1'000'000;

std::string Demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
      &std::free);
  return status == 0 && text != nullptr ? text.get() : symbol;
}

// Returns where the argument list begins: at the first parenthesis outside of
// template arguments.
size_t EndOfName(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>') --depth;
    if (text[i] == '(' && depth == 0) return i;
  }
  return text.size();
}

}  // namespace

ClockLine::ClockLine(const std::vector<ClockReading>& before,
                     const std::vector<ClockReading>& after) {
  const ClockReading &first = Fastest(before), &last = Fastest(after);
  read_ns_ = first.read_ns;
  steady_ns_ = first.middle_ns();
  const int64_t run = last.read_ns - first.read_ns;
  if (run >= kShortestRun)
    pace_ = static_cast<double>(last.middle_ns() - steady_ns_) /
            static_cast<double>(run);
}

int64_t ClockLine::ToSteady(int64_t read_ns) const {
  return steady_ns_ +
         static_cast<int64_t>(static_cast<double>(read_ns - read_ns_) * pace_);
}

void GpuActivityBuffer::Add(std::string_view symbol, const Entry& entry) {
  if (entry.begin_ns <= 0 || entry.end_ns < entry.begin_ns) return;
  MutexLock lock(mutex_);
  if (entries_.size() >= limit_) {
    ++dropped_;
    return;
  }
  auto name = names_.find(symbol);
  if (name == names_.end()) {
    const auto next = static_cast<uint32_t>(names_.size());
    name = names_.emplace(symbol, next).first;
  }
  entries_.push_back({name->second, entry});
}

void GpuActivityBuffer::Drop(uint64_t count) {
  MutexLock lock(mutex_);
  dropped_ += count;
}

GpuActivityLog GpuActivityBuffer::Take(const ClockLine& clock) {
  MutexLock lock(mutex_);
  std::vector<std::string> names(names_.size());
  for (const auto& [symbol, number] : names_)
    names[number] = KernelName(symbol);
  GpuActivityLog log;
  log.dropped = std::exchange(dropped_, 0);
  log.activities.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    if (entry.end_ns < clock.begin_ns()) continue;
    log.activities.push_back({.name = names[name],
                              .device = entry.device,
                              .stream = entry.stream,
                              .bytes = entry.bytes,
                              .begin_ns = clock.ToSteady(entry.begin_ns),
                              .end_ns = clock.ToSteady(entry.end_ns)});
  }
  entries_ = {};
  names_.clear();
  return log;
}

std::string KernelName(std::string_view symbol) {
  const std::string mangled(symbol);
  std::string name = Demangled(mangled);
  if (name != mangled) {
    name = absl::StrReplaceAll(name, {{"(anonymous namespace)::", ""}});
    name.resize(EndOfName(name));
    name = std::string(absl::StripPrefix(name, "void "));
  }
  if (name.size() <= kLongestName) return name;
  return absl::StrCat(name.substr(0, kLongestName - 3), "...");
}

}  // namespace baton
