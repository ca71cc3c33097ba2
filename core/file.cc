// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton {
namespace {

// What a disk is given at a time, and what its blocks begin at multiples of.
constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kAligned = 4096;

}  // namespace

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

FileWriter::FileWriter(const File& file)
    : descriptor_(file.descriptor()),
      buffer_(static_cast<char*>(std::aligned_alloc(kAligned, kBufferBytes)),
              std::free) {
  if (buffer_ == nullptr) throw std::bad_alloc();
}

absl::Status FileWriter::Write(const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t size = std::min(bytes, kBufferBytes - filled_);
    std::memcpy(buffer_.get() + filled_, from, size);
    filled_ += size;
    from += size;
    bytes -= size;
    if (filled_ < kBufferBytes) continue;
    SetDirect(true);
    RETURN_IF_ERROR(WriteBuffer());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::WriteBuffer() {
  const char* from = buffer_.get();
  for (size_t bytes = std::exchange(filled_, 0); bytes > 0;) {
    const ssize_t n = write(descriptor_, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL &&
        direct_) {  // it takes other blocks, or none
      SetDirect(false);
      continue;
    }
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    from += n;
    bytes -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// Where the file system cannot it stays as it is.
void FileWriter::SetDirect(bool direct) {
  const int flags = fcntl(descriptor_, F_GETFL);
  direct_ = fcntl(descriptor_, F_SETFL,
                  direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 &&
            direct;
}

absl::Status FileWriter::Flush() {
  if (direct_) SetDirect(false);  // the rest is no whole block
  RETURN_IF_ERROR(WriteBuffer());
  if (fsync(descriptor_) != 0)
    return absl::ErrnoToStatus(errno, "cannot flush");
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(FileWriter&)> write) {
  static std::atomic<int> counter{0};
  const std::string aside =
      absl::StrCat(path, ".", getpid(), ".", counter++, ".tmp");
  File file(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.descriptor() < 0) return absl::ErrnoToStatus(errno, "cannot create");
  absl::Status status = CatchErrors([&]() -> absl::Status {
    FileWriter writer(file);
    RETURN_IF_ERROR(write(writer));
    return writer.Flush();
  });
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
