// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// An open file; the destructor closes it. Thread-compatible.
class File {
 public:
  // Opens a file for reading. Returns NotFound, or InvalidArgument if it is not
  // a regular file; errors do not name the path.
  static absl::StatusOr<File> Open(const std::string& path);
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&&) = delete;
  ~File();

  int descriptor() const { return descriptor_; }
  absl::StatusOr<uint64_t> Size() const;
  // Reads exactly `bytes` bytes; returns DataLoss if the file ends before.
  absl::Status ReadAt(void* data, size_t bytes, uint64_t offset) const;

 private:
  int descriptor_;
};

// Writes a file from its beginning, bypassing the page cache if the file system
// can: finding memory for the cache may take longer than writing to the disk.
// Copies the caller's data and writes it concurrently. Thread-compatible.
class FileWriter {
 public:
  explicit FileWriter(const File& file);
  ~FileWriter();  // waits for the disk

  // May return the error of an earlier Write.
  absl::Status Write(const void* data, size_t bytes);
  // Call this once, at the end: returns when everything is on disk.
  absl::Status Flush();

 private:
  class Disk;
  struct Buffer;
  // Starts writing the present buffer to disk and switches to the next one.
  absl::Status PassOn();

  const std::unique_ptr<Disk> disk_;
  std::vector<Buffer> buffers_;  // used in turn
  size_t present_ = 0;
  size_t filled_ = 0;    // bytes of the present buffer in use
  uint64_t offset_ = 0;  // the present buffer's position in the file
};

// Replaces `path` by what `write` writes: first into a temporary file beside
// it, which is then flushed to disk and renamed. Whenever the process or the
// machine fails, `path` is either the old file or the complete new one. Errors
// do not name the path and leave the old file unchanged.
absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(FileWriter&)> write);

// Makes created, renamed or removed names in a folder survive a crash of the
// machine, if its file system can.
void FlushFolder(const std::string& path);

}  // namespace baton
