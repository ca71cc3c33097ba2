// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/free_with.h"
#include "core/status.h"

namespace baton::data {
namespace {

using ArchivePtr = std::unique_ptr<archive, FreeWith<archive_read_free>>;

constexpr size_t kBlock = 1 << 20;
// An archive that unpacks to more than this, and grows by more than the factor
// below, was made to fill the memory; images never do.
constexpr size_t kHarmless = size_t{256} << 20;
constexpr size_t kLargestGrowth = 1000;

absl::Status CheckReadable(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (error)
    return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  if (status.type() == std::filesystem::file_type::directory)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder, expected a file"));
  return absl::OkStatus();
}

absl::Status Broken(const std::string& path, archive* reader) {
  const char* why = archive_error_string(reader);
  return absl::DataLossError(absl::StrCat(
      path, ": cannot be unpacked: ", why != nullptr ? why : "unknown format"));
}

absl::StatusOr<ArchivePtr> Open(const std::string& path, bool raw) {
  RETURN_IF_ERROR(CheckReadable(path));
  ArchivePtr reader(archive_read_new());
  // Enables only these filters: for some others, libarchive starts programs.
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_bzip2(reader.get());
  archive_read_support_filter_xz(reader.get());
  archive_read_support_filter_zstd(reader.get());
  if (raw) {
    archive_read_support_format_raw(reader.get());
    archive_read_support_format_empty(reader.get());
  } else {
    archive_read_support_format_tar(reader.get());
    archive_read_support_format_zip(reader.get());
  }
  if (archive_read_open_filename(reader.get(), path.c_str(), kBlock) !=
      ARCHIVE_OK) {
    return Broken(path, reader.get());
  }
  return reader;
}

// Reads block by block, because the size in a header may be false and must not
// decide how much memory is allocated.
absl::StatusOr<std::string> ReadData(const std::string& path, archive* reader) {
  std::string bytes;
  for (;;) {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int code = archive_read_data_block(reader, &block, &size, &offset);
    if (code == ARCHIVE_EOF) return bytes;
    if (code != ARCHIVE_OK) return Broken(path, reader);
    if (offset != static_cast<la_int64_t>(bytes.size()))
      return absl::DataLossError(absl::StrCat(path, ": holds a sparse file"));
    bytes.append(static_cast<const char*>(block), size);
    if (bytes.size() > kHarmless &&
        static_cast<int64_t>(bytes.size() / kLargestGrowth) >
            archive_filter_bytes(reader, -1)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          path, ": unpacks to more than ", kLargestGrowth, " times its size"));
    }
  }
}

std::string NameOf(archive_entry* entry) {
  // Null if the name cannot be converted in the current locale.
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  if (name == nullptr) return "";
  return absl::StartsWith(name, "./") ? name + 2 : name;
}

}  // namespace

bool IsArchiveName(const std::string& path) {
  for (const char* ending :
       {".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip"}) {
    if (absl::EndsWithIgnoreCase(path, ending)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<ArchiveEntry>> ReadArchive(
    const std::string& path,
    const std::function<bool(const std::string& name)>& wanted) {
  ASSIGN_OR_RETURN(ArchivePtr reader, Open(path, /*raw=*/false));
  std::vector<ArchiveEntry> entries;
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
      return Broken(path, reader.get());
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string name = NameOf(entry);
    if (!wanted(name)) continue;
    ASSIGN_OR_RETURN(std::string bytes, ReadData(path, reader.get()));
    entries.push_back({std::move(name), std::move(bytes)});
  }
  // A truncated gzip stream is noticed only when it is read to its end.
  if (archive_errno(reader.get()) != 0 && entries.empty())
    return Broken(path, reader.get());
  return entries;
}

absl::StatusOr<std::string> ReadUnpacked(const std::string& path) {
  ASSIGN_OR_RETURN(ArchivePtr reader, Open(path, /*raw=*/true));
  archive_entry* entry = nullptr;
  const int code = archive_read_next_header(reader.get(), &entry);
  if (code == ARCHIVE_EOF) return std::string();
  if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
    return Broken(path, reader.get());
  return ReadData(path, reader.get());
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  RETURN_IF_ERROR(CheckReadable(path));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  if (!file)
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  return std::move(bytes).str();
}

}  // namespace baton::data
