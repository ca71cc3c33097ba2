// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/conv_choices.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/log.h"

namespace baton {
namespace {

std::string LineOf(const std::string& key, const ConvChoice& choice) {
  return absl::StrCat(
      key, "\t", choice.engine, "\t",
      absl::StrJoin(choice.knobs, ",", absl::PairFormatter("=")), "\n");
}

std::optional<std::pair<int64_t, int64_t>> ParseKnob(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::pair<int64_t, int64_t> knob;
  if (!absl::SimpleAtoi(parts.first, &knob.first) ||
      !absl::SimpleAtoi(parts.second, &knob.second))
    return std::nullopt;
  return knob;
}

std::optional<ConvChoice> ParseChoice(absl::string_view engine,
                                      absl::string_view knobs) {
  ConvChoice choice;
  if (!absl::SimpleAtoi(engine, &choice.engine) || choice.engine < 0)
    return std::nullopt;
  for (absl::string_view text : absl::StrSplit(knobs, ',', absl::SkipEmpty())) {
    const auto knob = ParseKnob(text);
    if (!knob) return std::nullopt;
    choice.knobs.push_back(*knob);
  }
  return choice;
}

std::optional<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

void ConvChoices::UseFile(const std::string& path) {
  MutexLock lock(mutex_);
  path_ = path;
  if (path.empty()) return;
  const std::string text = ReadWhole(path).value_or("");
  const std::string heading = absl::StrCat(kHeading, "\n");
  if (text.empty()) {
    AppendLocked(heading);
  } else if (text.compare(0, heading.size(), heading) == 0) {
    ReadLocked(text);
    // The next line must not be appended to an incomplete one.
    if (text.back() != '\n') AppendLocked("\n");
  } else {
    LogWarning("convolutions: ", path, " does not begin with '", kHeading,
               "': it is neither read nor written");
    path_.clear();
  }
}

void ConvChoices::ReadLocked(const std::string& text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  int bad = lines.back().empty() ? 0 : 1;  // an incomplete last line
  lines.pop_back();
  for (absl::string_view line : lines) {
    // Several processes that create the file at once may each write the
    // heading.
    if (line.empty() || line == kHeading) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    const auto choice =
        fields.size() == 3 ? ParseChoice(fields[1], fields[2]) : std::nullopt;
    if (choice) {
      choices_[std::string(fields[0])] = *choice;
    } else {
      ++bad;
    }
  }
  if (bad > 0)
    LogWarning("convolutions: passed over ", bad, " bad lines of ", path_);
}

void ConvChoices::AppendLocked(const std::string& text) {
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << text << std::flush;
  if (file) return;
  LogWarning("convolutions: cannot write to ", path_,
             ", so choices end with the process");
  path_.clear();
}

std::optional<ConvChoice> ConvChoices::Find(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto it = choices_.find(key);
  if (it == choices_.end()) return std::nullopt;
  return it->second;
}

void ConvChoices::Add(const std::string& key, const ConvChoice& choice) {
  MutexLock lock(mutex_);
  choices_[key] = choice;
  if (!path_.empty()) AppendLocked(LineOf(key, choice));
}

ConvChoices& ConvChoices::OfProcess() {
  static auto* const choices = [] {
    auto* made = new ConvChoices;
    const char* path = std::getenv("BATON_CUDNN_CACHE");
    if (path != nullptr) made->UseFile(path);
    return made;
  }();
  return *choices;
}

}  // namespace baton
