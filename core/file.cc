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
#include "core/executor.h"
#include "core/future.h"
#include "core/status.h"

namespace baton {
namespace {

// The size of writes to the disk, and the alignment of its blocks.
constexpr size_t kBufferBytes = size_t{4} << 20;
// One buffer is filled while the disk writes the others.
constexpr size_t kBuffers = 3;
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

// Writes to one file. Thread-safe.
class FileWriter::Disk {
 public:
  explicit Disk(int descriptor) : descriptor_(descriptor) {}

  // Writes whole blocks, whose memory must stay until the future is done.
  Future<void> WriteBeside(const char* from, size_t bytes, uint64_t offset) {
    if (threads_ == nullptr) {
      threads_ = std::make_unique<ThreadPool>(kBuffers - 1, "disk");
      SetDirect(true);
    }
    const Promise<void> written;
    threads_->Post([this, from, bytes, offset, written] {
      written.Set(Write(from, bytes, offset));
    });
    return written.future();
  }
  absl::Status Write(const char* from, size_t bytes, uint64_t offset) {
    while (bytes > 0) {
      const bool direct = direct_;
      const ssize_t n =
          pwrite(descriptor_, from, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EINVAL &&
          direct) {  // it takes other blocks or none
        SetDirect(false);
        continue;
      }
      if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
      from += n;
      bytes -= static_cast<size_t>(n);
      offset += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }
  // Call this when no write is in progress; these need not be whole blocks.
  absl::Status Finish(const char* from, size_t bytes, uint64_t offset) {
    if (direct_) SetDirect(false);
    RETURN_IF_ERROR(Write(from, bytes, offset));
    if (fsync(descriptor_) != 0)
      return absl::ErrnoToStatus(errno, "cannot flush");
    return absl::OkStatus();
  }

 private:
  // Has no effect if the file system does not support it.
  void SetDirect(bool direct) {
    const int flags = fcntl(descriptor_, F_GETFL);
    direct_ = fcntl(descriptor_, F_SETFL,
                    direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 &&
              direct;
  }

  const int descriptor_;
  std::atomic<bool> direct_{false};
  std::unique_ptr<ThreadPool> threads_;  // made for the first full buffer
};

struct FileWriter::Buffer {
  std::unique_ptr<char, void (*)(void*)> data{
      static_cast<char*>(std::aligned_alloc(kAligned, kBufferBytes)),
      std::free};
  Future<void> written = ReadyFuture<void>(absl::OkStatus());
};

FileWriter::FileWriter(const File& file)
    : disk_(std::make_unique<Disk>(file.descriptor())), buffers_(kBuffers) {
  for (const Buffer& buffer : buffers_) {
    if (buffer.data == nullptr) throw std::bad_alloc();
  }
}

FileWriter::~FileWriter() {
  for (const Buffer& buffer : buffers_) buffer.written.Await().IgnoreError();
}

absl::Status FileWriter::Write(const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t size = std::min(bytes, kBufferBytes - filled_);
    std::memcpy(buffers_[present_].data.get() + filled_, from, size);
    filled_ += size;
    from += size;
    bytes -= size;
    if (filled_ == kBufferBytes) RETURN_IF_ERROR(PassOn());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::PassOn() {
  Buffer& full = buffers_[present_];
  full.written = disk_->WriteBeside(full.data.get(), kBufferBytes, offset_);
  offset_ += std::exchange(filled_, 0);
  present_ = (present_ + 1) % buffers_.size();
  return buffers_[present_].written.Await();
}

absl::Status FileWriter::Flush() {
  for (const Buffer& buffer : buffers_) RETURN_IF_ERROR(buffer.written.Await());
  return disk_->Finish(buffers_[present_].data.get(), filled_, offset_);
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
