// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace baton::examples {

struct Scalar {
  std::string tag;  // "loss"
  double value = 0;
};

// A file of events that TensorBoard reads: records of a length, an Event
// (event.proto) and a checksum of each. Confined to one thread.
class EventFile {
 public:
  // Under a name of its own in `folder`, which is made where it is missing.
  static absl::StatusOr<std::unique_ptr<EventFile>> Make(
      const std::string& folder);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Can be read on return.
  absl::Status Add(int64_t step, const std::vector<Scalar>& scalars);

  const std::string& path() const { return path_; }

 private:
  EventFile(std::string path, std::FILE* file);
  absl::Status Write(absl::string_view event);

  const std::string path_;
  std::FILE* const file_;
};

// CRC-32C (Castagnoli), as records have it: rotated, and with a number added,
// so that the checksum of what has checksums is no such one.
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace baton::examples
