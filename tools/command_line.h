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

// Command lines of all programs: absl flags, read in one way everywhere.
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

// A flag's time in whole milliseconds; a hundred years, which clocks can still
// be added to, for what is longer (inf). InvalidArgument names the flag where
// it is shorter than `least`.
absl::StatusOr<std::chrono::milliseconds> TimeOf(
    const absl::Flag<absl::Duration>& flag,
    std::chrono::milliseconds least = std::chrono::milliseconds(1));

// InvalidArgument: "--flag why".
absl::Status WrongFlag(absl::string_view flag, absl::string_view why);

// InvalidArgument names the flag, its value and the least one.
absl::Status CheckAtLeast(absl::string_view flag, double value, double least);

// The same for the first of the flags that is less than `least`.
template <typename... Numbers>
absl::Status AtLeast(double least, const absl::Flag<Numbers>&... flags) {
  absl::Status wrong;
  (wrong.Update(CheckAtLeast(absl::GetFlagReflectionHandle(flags).Name(),
                             static_cast<double>(absl::GetFlag(flags)), least)),
   ...);
  return wrong;
}

// OK where `word` is one of those that `who`, a flag or a program, takes. Else
// InvalidArgument: "--dtype takes fp32 or bf16, not 'bf17' (do you mean
// bf16?)".
absl::Status CheckWord(absl::string_view who, const std::string& word,
                       const std::vector<std::string>& words);

// " (do you mean X?)" for the X among `words` that `word` is nearly; empty
// where there is none.
std::string DoYouMean(absl::string_view word,
                      const std::vector<std::string>& words);

// What --help prints: `usage` and every flag with its meaning and default.
std::string HelpText(const std::string& usage);

// For main: reads the flags and gives the positional arguments. Prints the help
// (--help) or Baton's version (--version) and exits with 0 when asked for;
// prints one line and exits with 2 when a flag is wrong.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          const std::string& usage);

// InvalidArgument names a word for which the program has no use.
absl::Status UnexpectedArgument(absl::string_view word);

// The same for programs that take flags alone: another argument is wrong too.
void ParseFlagsAloneOrExit(int argc, char** argv, const std::string& usage);

// Writes to stdout, at once. DataLoss where it did not take everything, as on a
// full disk.
absl::Status Print(const std::string& text);

// "PROGRAM: message" on stderr; gives `code`, for `return Complain(...)`.
int Complain(const std::string& message, int code);

// The exit code of a main that ended so: 0 for OK, where standard output took
// everything that was printed; else prints the message and gives 2 where the
// program was called wrongly (InvalidArgument), 1 otherwise.
int ExitCode(const absl::Status& status);

}  // namespace baton::tools
