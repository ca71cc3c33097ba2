// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton {

absl::StatusOr<File> File::Open(const std::string& path) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor() < 0) return absl::ErrnoToStatus(errno, "cannot open");
  struct stat info {};
  if (fstat(file.descriptor(), &info) != 0)
    return absl::ErrnoToStatus(errno, "cannot stat");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a file");
  return file;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<uint64_t> File::Size() const {
  struct stat info {};
  if (fstat(descriptor_, &info) != 0)
    return absl::ErrnoToStatus(errno, "cannot stat");
  return static_cast<uint64_t>(info.st_size);
}

absl::Status File::ReadAt(void* data, size_t bytes, uint64_t offset) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = pread(descriptor_, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (n == 0) return absl::DataLossError("the file ends early");
    to += n;
    bytes -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status File::Write(const void* data, size_t bytes) const {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(descriptor_, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    from += n;
    bytes -= static_cast<size_t>(n);
  }
  // Else a large file waits in memory for the flush at its end. A hint: where
  // it is not taken, the flush does all.
  sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(const File&)> write) {
  static std::atomic<int> counter{0};
  const std::string aside =
      absl::StrCat(path, ".", getpid(), ".", counter++, ".tmp");
  const File file(
      open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.descriptor() < 0) return absl::ErrnoToStatus(errno, "cannot create");
  absl::Status status = CatchErrors([&] { return write(file); });
  if (status.ok() && fsync(file.descriptor()) != 0)
    status = absl::ErrnoToStatus(errno, "cannot flush");
  if (status.ok() && rename(aside.c_str(), path.c_str()) != 0)
    status = absl::ErrnoToStatus(errno, "cannot rename");
  if (!status.ok()) {
    unlink(aside.c_str());
    return status;
  }
  FlushFolder(std::filesystem::path(path).parent_path());
  return absl::OkStatus();
}

void FlushFolder(const std::string& path) {
  const File folder(open(path.empty() ? "." : path.c_str(),
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.descriptor() >= 0) fsync(folder.descriptor());
}

}  // namespace baton
