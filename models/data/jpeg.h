// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/tensor.h"

namespace baton::data {

// Decodes to RGB: u8 [3, H, W], a view of interleaved pixels. Gray and CMYK
// images are converted. DataLoss if the bytes are not a JPEG, are broken or
// truncated, or have hundreds of scans; ResourceExhausted for more than 200
// million pixels. The text begins with `name`.
absl::StatusOr<Tensor> DecodeJpeg(const std::string& bytes,
                                  const std::string& name);

// Encodes u8 [3, H, W] or [1, H, W] to a JPEG file's bytes; quality is 1 to
// 100.
absl::StatusOr<std::string> EncodeJpeg(const Tensor& image, int quality = 95);

}  // namespace baton::data
