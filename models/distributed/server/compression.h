// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "core/tensor.h"
#include "models/distributed/server/shard_state.h"

namespace baton::dist {

// How a trainer compresses the dense gradients that it pushes. Gradients of
// rows are not compressed.
struct Compression {
  enum class Kind : uint8_t {
    kNone = 0,
    kBf16 = 1,  // half the bytes
    kTopK = 2,  // only the largest elements, at 12 bytes each
  };
  Kind kind = Kind::kNone;
  // For kTopK: the share of a shard's elements in a push, above 0.
  double keep = 0.01;
  static constexpr auto Fields() {
    return std::tuple{&Compression::kind, &Compression::keep};
  }
};

// "none", "bf16" and "topk".
const char* Name(Compression::Kind kind);
std::optional<Compression::Kind> CompressionFromName(const std::string& name);
// Returns InvalidArgument, which names what is wrong.
absl::Status Check(const Compression& compression);

// Compresses the dense gradients that one trainer pushes to one shard. What a
// push loses, by rounding or omission, is added to the next one, so that all of
// it arrives eventually. Thread-compatible.
class Compressor {
 public:
  explicit Compressor(const Compression& compression)
      : compression_(compression) {}

  // Returns what is sent instead of `gradient`, f32 [elements] on the CPU,
  // which is overwritten.
  Gradients Compress(const Tensor& gradient);
  // What has not been sent so far, f32 [elements]; undefined before the first
  // push.
  const Tensor& residual() const { return residual_; }

 private:
  Gradients TakeLargest();

  const Compression compression_;
  Tensor residual_;
};

// Returns the gradients in full: f32 [elements] on `device`.
Tensor Expand(const Gradients& gradients, int64_t elements, Device device);

}  // namespace baton::dist
