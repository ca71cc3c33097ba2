// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/free_with.h"
#include "core/status.h"
#include "tools/command_line.h"

namespace baton::tools {
namespace {

using File = std::unique_ptr<FILE, FreeWith<std::fclose>>;

// Returns where to write a file before it replaces `path`; devices are written
// directly.
std::string PartOf(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool file = !std::filesystem::exists(status) ||
                    std::filesystem::is_regular_file(status);
  return file ? path + ".part" : path;
}

absl::Status CannotWrite(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status CheckOutput(const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  const std::string part = PartOf(path);
  const File file(std::fopen(part.c_str(), "a"));
  if (file == nullptr) return CannotWrite(path);
  if (part != path) std::remove(part.c_str());
  return absl::OkStatus();
}

absl::Status WriteOutput(const std::string& path, const std::string& text) {
  if (path == "-") return Print(text);
  const std::string part = PartOf(path);
  File file(std::fopen(part.c_str(), "w"));
  if (file == nullptr) return CannotWrite(path);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
      std::fflush(file.get()) == 0;
  if (written &&
      (part == path || std::rename(part.c_str(), path.c_str()) == 0)) {
    return absl::OkStatus();
  }
  const absl::Status failed = CannotWrite(path);
  if (part != path) std::remove(part.c_str());
  return failed;
}

absl::Status CheckOutputFolder(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", path, ": ", error.message()));
  }
  return CheckOutput(absl::StrCat(path, "/file"));
}

namespace internal {

absl::Status WrongOutput(absl::string_view flag, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", status.message()));
}

}  // namespace internal

absl::Status CheckOutputFolder(const absl::Flag<std::string>& flag) {
  return internal::WrongOutput(absl::GetFlagReflectionHandle(flag).Name(),
                               CheckOutputFolder(absl::GetFlag(flag)));
}

}  // namespace baton::tools
