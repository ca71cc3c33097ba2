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

// How a trainer makes the dense gradients smaller that it pushes. Gradients of
// rows go as they are.
struct Compression {
  enum class Kind : uint8_t {
    kNone = 0,
    kBf16 = 1,  // half the bytes
    kTopK = 2,  // the largest elements alone, 12 bytes each
  };
  Kind kind = Kind::kNone;
  // Of kTopK: the share of a shard's elements that a push has, above 0.
  double keep = 0.01;
  static constexpr auto Fields() {
    return std::tuple{&Compression::kind, &Compression::keep};
  }
};

// "none", "bf16" and "topk".
const char* Name(Compression::Kind kind);
std::optional<Compression::Kind> CompressionFromName(const std::string& name);
// InvalidArgument names what is wrong.
absl::Status Check(const Compression& compression);

// The dense gradients that one trainer pushes to one shard. What a push leaves
// out, by rounding or as a whole, is kept and added to the next one's, so that
// in the end all of it arrives. Thread-compatible.
class Compressor {
 public:
  explicit Compressor(const Compression& compression)
      : compression_(compression) {}

  // What travels in place of f32 [elements] of the CPU, which it overwrites.
  Gradients Compress(const Tensor& gradient);
  // What was left out so far, f32 [elements]; undefined before the first push.
  const Tensor& residual() const { return residual_; }

 private:
  Gradients TakeLargest();

  const Compression compression_;
  Tensor residual_;
};

// The f32 [elements] on `device` that such gradients stand for.
Tensor Expand(const Gradients& gradients, int64_t elements, Device device);

}  // namespace baton::dist
