// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor.h"

// The safetensors file format: 8 bytes little-endian header length, a JSON
// header (name -> dtype, shape, data_offsets), then the bytes, row-major.
namespace baton {

struct SafeTensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// Errors name the file and what is wrong with it: NotFound, DataLoss for a
// header or offsets that do not fit the file, InvalidArgument for a dtype that
// Tensor lacks.
absl::StatusOr<SafeTensors> ReadSafeTensors(const std::string& path);

// Writes beside `path` and renames, so that no half-written file is ever there.
absl::Status WriteSafeTensors(const std::string& path,
                              const SafeTensors& content);

}  // namespace baton
