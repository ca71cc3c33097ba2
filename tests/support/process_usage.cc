// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/process_usage.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

void ReadStatus(const std::string& folder, ProcessUsage& usage) {
  std::ifstream status(folder + "/status");
  std::string line;
  while (std::getline(status, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "VmRSS:") words >> usage.resident_kb;
    if (name == "RssShmem:") words >> usage.shared_kb;
    if (name == "Threads:") words >> usage.threads;
  }
}

void ReadCpu(const std::string& folder, ProcessUsage& usage) {
  std::ifstream file(folder + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The second field is a name in brackets, which may hold spaces.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  usage.cpu_seconds = static_cast<double>(user + system) /
                      static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

absl::StatusOr<ProcessUsage> UsageOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  ProcessUsage usage;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder + "/fd", error), end;
       !error && i != end; i.increment(error)) {
    ++usage.descriptors;
  }
  ReadStatus(folder, usage);
  ReadCpu(folder, usage);
  if (error || usage.resident_kb == 0) {
    return absl::NotFoundError(absl::StrCat("no process ", pid));
  }
  return usage;
}

}  // namespace baton::testing
