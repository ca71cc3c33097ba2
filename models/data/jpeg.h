// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/tensor.h"

namespace baton::data {

// Decodes to RGB: u8 [3, H, W], a view of rows of pixels. Grey and CMYK images
// are converted. DataLoss, led by `name`, for bytes that are no JPEG, are
// broken, break off or have hundreds of scans; ResourceExhausted for more than
// 200 million pixels.
absl::StatusOr<Tensor> DecodeJpeg(const std::string& bytes,
                                  const std::string& name);

// u8 [3, H, W] or [1, H, W] to a JPEG file's bytes; quality 1 to 100.
absl::StatusOr<std::string> EncodeJpeg(const Tensor& image, int quality = 95);

}  // namespace baton::data
