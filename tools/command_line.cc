// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/command_line.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "core/version.h"

namespace baton::tools {
namespace {

constexpr absl::Duration kLongest = absl::Hours(100 * 365 * 24);

std::string Wanted(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<absl::Duration>()) return "a time, as 500ms, 2s or 1m";
  if (flag.IsOfType<bool>()) return "true or false";
  if (flag.IsOfType<uint32_t>() || flag.IsOfType<uint64_t>())
    return "a whole number, 0 or more";
  if (flag.IsOfType<int32_t>() || flag.IsOfType<int64_t>())
    return "a whole number";
  if (flag.IsOfType<float>() || flag.IsOfType<double>()) return "a number";
  return "another value";
}

absl::Status Set(absl::CommandLineFlag& flag, const std::string& value) {
  std::string error;
  if (flag.ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag.Name(), "=", value,
                                                 " is not a valid value; give ",
                                                 Wanted(flag)));
}

// Returns the switch that "--noswitch" clears, or null.
absl::CommandLineFlag* FindNegated(const std::string& name) {
  if (!absl::StartsWith(name, "no")) return nullptr;
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name.substr(2));
  return flag != nullptr && flag->IsOfType<bool>() ? flag : nullptr;
}

// Returns how many letters must be added, dropped, replaced or swapped with the
// next one to turn one word into the other.
size_t Distance(absl::string_view a, absl::string_view b) {
  // of[i][j] is the distance of the first i letters of `a` to the first j of
  // `b`.
  std::vector<std::vector<size_t>> of(a.size() + 1,
                                      std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        of[i][j] = i + j;
        continue;
      }
      of[i][j] = std::min({of[i - 1][j] + 1, of[i][j - 1] + 1,
                           of[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        of[i][j] = std::min(of[i][j], of[i - 2][j - 2] + 1);
    }
  }
  return of[a.size()][b.size()];
}

absl::Status UnknownFlag(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [flag, unused] : absl::GetAllFlags())
    known.push_back(absl::StrCat("--", flag));
  const std::string given = absl::StrCat("--", name);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag ", given, DoYouMean(given, known), "; see --help"));
}

// Reads the flag at args[i], and moves `i` on when it takes its value from the
// next argument.
absl::Status ReadFlag(const std::vector<std::string>& args, size_t& i) {
  const std::string text = args[i].substr(args[i].find_first_not_of('-'));
  const size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  std::replace(name.begin(), name.end(), '-', '_');
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (flag == nullptr && equals == std::string::npos) {
    if (absl::CommandLineFlag* negated = FindNegated(name))
      return Set(*negated, "false");
  }
  if (flag == nullptr) return UnknownFlag(name);
  if (equals != std::string::npos) return Set(*flag, text.substr(equals + 1));
  if (flag->IsOfType<bool>()) return Set(*flag, "true");
  if (i + 1 == args.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " needs a value"));
  }
  return Set(*flag, args[++i]);
}

}  // namespace

absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& args) {
  CommandLine line;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      line.positional.insert(line.positional.end(), args.begin() + i + 1,
                             args.end());
      break;
    }
    if (arg == "--help" || arg == "-h") {
      line.help = true;
    } else if (arg.find_first_not_of('-') == std::string::npos ||
               arg.front() != '-') {
      line.positional.push_back(arg);
    } else {
      RETURN_IF_ERROR(ReadFlag(args, i));
    }
  }
  return line;
}

absl::Status WrongFlag(absl::string_view flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", why));
}

absl::Status CheckAtLeast(absl::string_view flag, double value, double least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", value, " is too small: give ", least, " or more"));
}

absl::Status CheckWord(absl::string_view who, const std::string& word,
                       const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end())
    return absl::OkStatus();
  const auto last = words.end() - 1;
  return absl::InvalidArgumentError(
      absl::StrCat(who, " takes ", absl::StrJoin(words.begin(), last, ", "),
                   words.size() > 1 ? " or " : "", *last, ", not '", word, "'",
                   DoYouMean(word, words)));
}

std::string DoYouMean(absl::string_view word,
                      const std::vector<std::string>& words) {
  // A word at a greater distance is not similar.
  const size_t limit = std::min(word.size(), 2 + word.size() / 4);
  // Of equally similar ones, prefers one that begins with the word, because
  // flags come in any order.
  std::tuple<size_t, bool, absl::string_view> nearest{limit, false, ""};
  for (const std::string& known : words) {
    nearest = std::min(nearest, {Distance(word, known),
                                 !absl::StartsWith(known, word), known});
  }
  return std::get<size_t>(nearest) == limit
             ? ""
             : absl::StrCat(" (do you mean ",
                            std::get<absl::string_view>(nearest), "?)");
}

absl::StatusOr<std::chrono::milliseconds> TimeOf(
    const absl::Flag<absl::Duration>& flag, std::chrono::milliseconds least) {
  const absl::Duration time = absl::GetFlag(flag);
  if (time < absl::FromChrono(least)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", absl::GetFlagReflectionHandle(flag).Name(), "=",
        absl::FormatDuration(time), " is too short: give ",
        absl::FormatDuration(absl::FromChrono(least)), " or more"));
  }
  return absl::ToChronoMilliseconds(std::min(time, kLongest));
}

std::string HelpText(const std::string& usage) {
  std::map<std::string, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags())
    flags.emplace(std::string(name), flag);
  std::string text = absl::StrCat(usage, "\n\nFlags:\n");
  for (const auto& [name, flag] : flags) {
    absl::StrAppend(&text, "  --", name, "  ", flag->Help());
    const std::string value = flag->DefaultValue();
    if (!value.empty()) absl::StrAppend(&text, " [", value, "]");
    text += '\n';
  }
  return text;
}

std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          const std::string& usage) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const auto end = std::find(args.begin(), args.end(), "--");
  if (std::find(args.begin(), end, "--version") != end) {
    std::exit(ExitCode(Print(absl::StrCat(program_invocation_short_name,
                                          " of Baton ", kVersion, "\n"))));
  }
  auto line = ReadFlags(args);
  if (!line.ok()) std::exit(Complain(std::string(line.status().message()), 2));
  if (line->help) {
    std::exit(ExitCode(Print(HelpText(usage))));
  }
  return std::move(line->positional);
}

absl::Status Print(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 &&
      std::ferror(stdout) == 0) {
    return absl::OkStatus();
  }
  // An earlier write may have failed, whose reason is not known any more.
  const std::string why =
      errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno));
  return absl::DataLossError(
      absl::StrCat("cannot write to standard output", why));
}

int Complain(const std::string& message, int code) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name,
               message.c_str());
  return code;
}

absl::Status UnexpectedArgument(absl::string_view word) {
  return absl::InvalidArgumentError(
      absl::StrCat("unexpected argument '", word, "'; see --help"));
}

void ParseFlagsAloneOrExit(int argc, char** argv, const std::string& usage) {
  const std::vector<std::string> rest = ParseFlagsOrExit(argc, argv, usage);
  if (!rest.empty()) std::exit(ExitCode(UnexpectedArgument(rest[0])));
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) {
    const absl::Status written = Print("");
    return written.ok() ? 0 : Complain(std::string(written.message()), 1);
  }
  return Complain(std::string(status.message()),
                  absl::IsInvalidArgument(status) ? 2 : 1);
}

}  // namespace baton::tools
