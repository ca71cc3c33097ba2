// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace baton {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Parses "debug", "info", "warning" or "error".
std::optional<LogLevel> LogLevelFromName(std::string_view name);

// Lines below `level` are dropped. Default: the level that BATON_LOG names;
// warning if it is unset, empty or invalid, which is logged once. Thread-safe.
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);

// Writes "W 12:00:01.123 [name] text" to stderr in one write. Thread-safe.
void LogLine(LogLevel level, const std::string& text);
// Sets the name that every line shows, such as the worker's.
void SetLogName(const std::string& name);

template <typename... Parts>
void LogDebug(const Parts&... parts) {
  if (LogEnabled(LogLevel::kDebug))
    LogLine(LogLevel::kDebug, absl::StrCat(parts...));
}
template <typename... Parts>
void LogInfo(const Parts&... parts) {
  if (LogEnabled(LogLevel::kInfo))
    LogLine(LogLevel::kInfo, absl::StrCat(parts...));
}
template <typename... Parts>
void LogWarning(const Parts&... parts) {
  if (LogEnabled(LogLevel::kWarning))
    LogLine(LogLevel::kWarning, absl::StrCat(parts...));
}
template <typename... Parts>
void LogError(const Parts&... parts) {
  if (LogEnabled(LogLevel::kError))
    LogLine(LogLevel::kError, absl::StrCat(parts...));
}

}  // namespace baton
