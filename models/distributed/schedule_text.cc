// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/file.h"
#include "core/status.h"
#include "models/distributed/schedule.h"

namespace baton::dist {
namespace {

constexpr StageOp kOps[] = {StageOp::kForward, StageOp::kInputGrad,
                            StageOp::kWeightGrad, StageOp::kBackward};

std::optional<int> ParseNumber(absl::string_view text) {
  int number = 0;
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (!digits || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// Adds a line, without its end, to `schedule`; it is not empty or a comment.
absl::Status ParseLine(absl::string_view line, Schedule& schedule) {
  if (absl::ConsumePrefix(&line, "schedule ") && schedule.name.empty()) {
    schedule.name = std::string(absl::StripAsciiWhitespace(line));
    return absl::OkStatus();
  }
  if (schedule.name.empty() ||
      !absl::ConsumePrefix(
          &line, absl::StrCat("worker ", schedule.workers.size(), ":"))) {
    return absl::InvalidArgumentError(
        schedule.name.empty()
            ? "expected \"schedule NAME\""
            : absl::StrCat("expected \"worker ", schedule.workers.size(),
                           ": ...\""));
  }
  Program& program = schedule.workers.emplace_back();
  for (absl::string_view word :
       absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    const auto step = ParseInstruction(word);
    if (!step) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected instructions such as 0F2, 1B2, 1W2 and 1BW2, got '", word,
          "'"));
    }
    program.push_back(*step);
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Instruction> ParseInstruction(absl::string_view text) {
  const size_t name = std::min(text.find_first_of("FBW"), text.size());
  const size_t after =
      std::min(text.find_first_not_of("FBW", name), text.size());
  const auto stage = ParseNumber(text.substr(0, name));
  const auto micro_batch = ParseNumber(text.substr(after));
  for (StageOp op : kOps) {
    if (text.substr(name, after - name) == NameOf(op) && stage && micro_batch)
      return Instruction{op, *stage, *micro_batch};
  }
  return std::nullopt;
}

std::string ToString(const Instruction& instruction) {
  return absl::StrCat(instruction.stage, NameOf(instruction.op),
                      instruction.micro_batch);
}

std::string ToString(const Program& program) {
  return absl::StrJoin(program, " ", [](std::string* out, const auto& step) {
    absl::StrAppend(out, ToString(step));
  });
}

std::string ToString(const Schedule& schedule) {
  std::string text = absl::StrCat("schedule ", schedule.name, "\n");
  for (size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    absl::StrAppend(&text, "worker ", worker, ": ",
                    ToString(schedule.workers[worker]), "\n");
  }
  return text;
}

absl::StatusOr<Schedule> ParseSchedule(const std::string& text) {
  Schedule schedule;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    RETURN_IF_ERROR(
        Annotate(ParseLine(line, schedule), absl::StrCat("line ", number)));
  }
  RETURN_IF_ERROR(CheckSchedule(schedule));
  return schedule;
}

absl::StatusOr<Schedule> LoadSchedule(const std::string& path) {
  const auto file = File::Open(path);
  RETURN_IF_ERROR(Annotate(file.status(), path));
  const absl::StatusOr<uint64_t> bytes = file->Size();
  RETURN_IF_ERROR(Annotate(bytes.status(), path));
  std::string text(*bytes, '\0');
  RETURN_IF_ERROR(Annotate(file->ReadAt(text.data(), *bytes, 0), path));
  auto schedule = ParseSchedule(text);
  RETURN_IF_ERROR(Annotate(schedule.status(), path));
  return schedule;
}

absl::Status SaveSchedule(const std::string& path, const Schedule& schedule) {
  const std::string text = ToString(schedule);
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return absl::OkStatus();
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write a schedule to ", path));
}

}  // namespace baton::dist
