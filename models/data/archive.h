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

// Whether the name ends like an archive that ReadArchive takes: .tar, .tgz,
// .tar.gz, .tar.xz, .tar.bz2, .tar.zst or .zip.
bool IsArchiveName(const std::string& path);

// The regular files in the archive at `path` whose names pass `wanted`, in the
// archive's order. NotFound, DataLoss for a broken or cut-off one, or
// ResourceExhausted for one that unpacks to more than 256 MB and a thousand
// times its size; the text names the path.
absl::StatusOr<std::vector<ArchiveEntry>> ReadArchive(
    const std::string& path,
    const std::function<bool(const std::string& name)>& wanted);

// All bytes of a file, unpacked when it is compressed by gzip, xz, bzip2 or
// zstd. Errors as above.
absl::StatusOr<std::string> ReadUnpacked(const std::string& path);

// All bytes of a file as it is.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace baton::data
