// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Reads the command lines of all programs, by absl flags, in the same way.
namespace baton::tools {

struct CommandLine {
  std::vector<std::string> positional;  // all after "--", and other non-flags
  bool help = false;                    // --help or -h was given
};

// Sets the flags that `args` (without the program's name) give: --flag=value,
// --flag value, --switch, --noswitch; '-' and '_' are the same in a name.
// InvalidArgument names the flag that is unknown, and the one that is meant, or
// that has a bad value.
absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& args);

// Returns a flag's time in whole milliseconds. A longer time than a hundred
// years, such as inf, becomes a hundred years, so that adding it to a time does
// not overflow. InvalidArgument names the flag if the time is shorter than
// `least`.
absl::StatusOr<std::chrono::milliseconds> TimeOf(
    const absl::Flag<absl::Duration>& flag,
    std::chrono::milliseconds least = std::chrono::milliseconds(1));

// Returns InvalidArgument: "--flag why".
absl::Status WrongFlag(absl::string_view flag, absl::string_view why);

// Returns InvalidArgument, with the flag, its value and the least one, if the
// value is less.
absl::Status CheckAtLeast(absl::string_view flag, double value, double least);

// The same for the first of these flags that is less than `least`.
template <typename... Numbers>
absl::Status AtLeast(double least, const absl::Flag<Numbers>&... flags) {
  absl::Status wrong;
  (wrong.Update(CheckAtLeast(absl::GetFlagReflectionHandle(flags).Name(),
                             static_cast<double>(absl::GetFlag(flags)), least)),
   ...);
  return wrong;
}

// Returns OK if `word` is one of `words`, the words that the flag or program
// `who` takes; else InvalidArgument: "--dtype takes fp32 or bf16, not 'bf17'
// (do you mean bf16?)".
absl::Status CheckWord(absl::string_view who, const std::string& word,
                       const std::vector<std::string>& words);

// Returns " (do you mean X?)" for the most similar of `words`; "" if none is
// similar.
std::string DoYouMean(absl::string_view word,
                      const std::vector<std::string>& words);

// Returns the text of --help: `usage`, and every flag with its meaning and
// default.
std::string HelpText(const std::string& usage);

// For main: reads the flags and returns the positional arguments. With --help
// or --version, prints the answer and exits with code 0. If a flag is wrong,
// prints one line and exits with 2.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          const std::string& usage);

// Returns InvalidArgument for an argument that the program does not take.
absl::Status UnexpectedArgument(absl::string_view word);

// The same for programs that take only flags: other arguments are wrong, too.
void ParseFlagsAloneOrExit(int argc, char** argv, const std::string& usage);

// Writes to stdout and flushes it. DataLoss if not everything could be written,
// as on a full disk.
absl::Status Print(const std::string& text);

// Prints "PROGRAM: message" on stderr and returns `code`, for `return
// Complain(...)`.
int Complain(const std::string& message, int code);

// Returns the exit code for a main that ends with `status`: 0 if it is OK and
// standard output took everything; else prints the message and returns 2 for
// InvalidArgument, which means a wrong command line, and 1 for other errors.
int ExitCode(const absl::Status& status);

}  // namespace baton::tools
