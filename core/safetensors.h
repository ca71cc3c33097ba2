// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"

// A file in the safetensors format consists of the header's length (8 bytes,
// little-endian), a JSON header (name -> dtype, shape, data_offsets), and the
// tensors' bytes, row-major.
namespace baton {

using NamedTensors = std::map<std::string, Tensor>;

struct SafeTensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// Describes what was written to a file, without the bytes of the tensors.
struct SafeTensorsIndex {
  std::string header;                         // as written to the file
  std::map<std::string, uint32_t> checksums;  // of each tensor: zlib's crc32
  static constexpr auto Fields() {
    return std::tuple{&SafeTensorsIndex::header, &SafeTensorsIndex::checksums};
  }
};

// Reads all tensors of a file. Errors name the file and what is wrong with it:
// NotFound, DataLoss for a header or offsets that do not fit the file,
// InvalidArgument for a dtype that Tensor lacks.
absl::StatusOr<SafeTensors> ReadSafeTensors(const std::string& path);

// Reads some tensors of a file that was written with this index. Returns
// DataLoss if it is torn, changed or another file, and NotFound if there is no
// such file or name.
absl::StatusOr<NamedTensors> ReadSafeTensors(
    const std::string& path, const SafeTensorsIndex& index,
    const std::vector<std::string>& names);

// Writes to a temporary file and renames it (ReplaceFile), so that a
// half-written file never exists at `path`.
absl::StatusOr<SafeTensorsIndex> WriteSafeTensors(const std::string& path,
                                                  const SafeTensors& content);

}  // namespace baton
