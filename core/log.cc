// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "absl/strings/str_format.h"
#include "core/mutex.h"

namespace baton {
namespace {

LogLevel LevelFromEnvironment() {
  constexpr LogLevel kDefault = LogLevel::kWarning;
  const char* name = std::getenv("BATON_LOG");
  if (name == nullptr || *name == '\0') return kDefault;
  if (const auto level = LogLevelFromName(name)) return *level;
  // Not LogWarning, because that needs the level which is determined here.
  LogLine(LogLevel::kWarning, absl::StrCat("BATON_LOG=", name,
                                           " means nothing; debug, info, "
                                           "warning and error do"));
  return kDefault;
}

std::atomic<LogLevel>& Level() {
  static std::atomic<LogLevel> level(LevelFromEnvironment());
  return level;
}

struct NameInLines {
  Mutex mutex;
  std::string text ABSL_GUARDED_BY(mutex);
};

NameInLines& ProcessName() {
  // Never destroyed, because lines may be logged during exit.
  static NameInLines* name = new NameInLines;
  return *name;
}

}  // namespace

std::optional<LogLevel> LogLevelFromName(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return std::nullopt;
}

void SetLogLevel(LogLevel level) { Level() = level; }
bool LogEnabled(LogLevel level) { return level >= Level().load(); }

void SetLogName(const std::string& name) {
  MutexLock lock(ProcessName().mutex);
  ProcessName().text = name;
}

void LogLine(LogLevel level, const std::string& text) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::string line;
  {
    MutexLock lock(ProcessName().mutex);
    line = absl::StrFormat(
        "%c %02d:%02d:%02d.%03d %s%s%s%s\n", "DIWE"[static_cast<int>(level)],
        local.tm_hour, local.tm_min, local.tm_sec, static_cast<int>(ms % 1000),
        ProcessName().text.empty() ? "" : "[", ProcessName().text,
        ProcessName().text.empty() ? "" : "] ", text);
  }
  [[maybe_unused]] ssize_t written = ::write(2, line.data(), line.size());
}

}  // namespace baton
