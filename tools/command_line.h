// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Command lines of all programs: absl flags, read in one way everywhere.
namespace baton::tools {

struct CommandLine {
  std::vector<std::string> positional;  // all after "--", and other non-flags
  bool help = false;                    // --help or -h was given
};

// Sets the flags that `args` (without the program's name) give: --flag=value,
// --flag value, --switch, --noswitch; '-' and '_' are the same in a name.
// InvalidArgument names the flag that is unknown or has a bad value.
absl::StatusOr<CommandLine> ReadFlags(const std::vector<std::string>& args);

// A flag's time in whole milliseconds; a hundred years, which clocks can still
// be added to, for what is longer (inf). InvalidArgument names the flag where
// it is shorter than `least`.
absl::StatusOr<std::chrono::milliseconds> TimeOf(
    const absl::Flag<absl::Duration>& flag,
    std::chrono::milliseconds least = std::chrono::milliseconds(1));

// InvalidArgument: "--flag why".
absl::Status WrongFlag(const char* flag, const std::string& why);

// What --help prints: `usage` and every flag with its meaning and default.
std::string HelpText(const std::string& usage);

// For main: reads the flags and gives the positional arguments. Prints the help
// and exits with 0 when asked for; prints one line and exits with 2 when a flag
// is wrong.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv,
                                          const std::string& usage);

// The same for programs that take flags alone: another argument is wrong too.
void ParseFlagsAloneOrExit(int argc, char** argv, const std::string& usage);

// Writes to stdout, at once. DataLoss where it did not take everything, as on a
// full disk.
absl::Status Print(const std::string& text);

// "PROGRAM: message" on stderr; gives `code`, for `return Complain(...)`.
int Complain(const std::string& message, int code);

// The exit code of a main that ended so: 0 for OK; else prints the message and
// gives 2 where the program was called wrongly (InvalidArgument), 1 otherwise.
int ExitCode(const absl::Status& status);

}  // namespace baton::tools
