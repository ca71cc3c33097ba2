// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::data {

struct ArchiveEntry {
  std::string name;  // as in the archive, without a leading "./"
  std::string bytes;
};

// Returns true if the name has the ending of an archive that ReadArchive takes:
// .tar, .tgz, .tar.gz, .tar.xz, .tar.bz2, .tar.zst or .zip.
bool IsArchiveName(const std::string& path);

// Returns the regular files in the archive at `path` whose names pass `wanted`,
// in the archive's order. Errors: NotFound; DataLoss if the archive is broken
// or truncated; ResourceExhausted if it unpacks to more than 256 MB and a
// thousand times its size. The text names the path.
absl::StatusOr<std::vector<ArchiveEntry>> ReadArchive(
    const std::string& path,
    const std::function<bool(const std::string& name)>& wanted);

// Returns all bytes of a file, unpacked if it is compressed by gzip, xz, bzip2
// or zstd. Errors as above.
absl::StatusOr<std::string> ReadUnpacked(const std::string& path);

// Returns all bytes of a file as it is.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace baton::data
