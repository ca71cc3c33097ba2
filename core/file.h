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

// An open file, closed at the end of the object. Thread-compatible.
class File {
 public:
  // To read. NotFound, InvalidArgument for what is no regular file; errors do
  // not name the path.
  static absl::StatusOr<File> Open(const std::string& path);
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&&) = delete;
  ~File();

  int descriptor() const { return descriptor_; }
  absl::StatusOr<uint64_t> Size() const;
  // DataLoss where the file ends before that.
  absl::Status ReadAt(void* data, size_t bytes, uint64_t offset) const;

 private:
  int descriptor_;
};

// Writes a file from its beginning on, past the page cache where the file
// system can: memory for pages of the cache may take longer to find than the
// disk to write. The disk works beside the caller, whose data is copied first.
// Thread-compatible.
class FileWriter {
 public:
  explicit FileWriter(const File& file);
  ~FileWriter();  // once the disk is done

  // An error may be that of an earlier Write.
  absl::Status Write(const void* data, size_t bytes);
  // Once, at the end: what was written is on the disk.
  absl::Status Flush();

 private:
  class Disk;
  struct Buffer;
  // Has the disk write what the present buffer holds, and goes to the next.
  absl::Status PassOn();

  const std::unique_ptr<Disk> disk_;
  std::vector<Buffer> buffers_;  // in turn
  size_t present_ = 0;
  size_t filled_ = 0;    // of it
  uint64_t offset_ = 0;  // where it belongs
};

// Puts what `write` writes in the place of `path`: into a file beside it first,
// which is flushed to the disk and renamed. Whenever the process or the machine
// dies, `path` is the former file or the whole new one. Errors do not name the
// path, and leave the former file.
absl::Status ReplaceFile(const std::string& path,
                         absl::FunctionRef<absl::Status(FileWriter&)> write);

// Makes names that were made, renamed or removed in a folder outlive a crash of
// the machine, as far as its file system can.
void FlushFolder(const std::string& path);

}  // namespace baton
