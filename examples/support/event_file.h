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

// A file of events for TensorBoard: records that consist of a length, an Event
// (event.proto) and checksums. Confined to one thread.
class EventFile {
 public:
  // Makes a file with a unique name in `folder`, which is made if it does not
  // exist.
  static absl::StatusOr<std::unique_ptr<EventFile>> Make(
      const std::string& folder);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // When this returns, readers see the event.
  absl::Status Add(int64_t step, const std::vector<Scalar>& scalars);

  const std::string& path() const { return path_; }

 private:
  EventFile(std::string path, std::FILE* file);
  absl::Status Write(absl::string_view event);

  const std::string path_;
  std::FILE* const file_;
};

// Returns the CRC-32C (Castagnoli) as records have it: rotated and with a
// constant added, so that a checksum over data with checksums differs from a
// plain one.
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace baton::examples
