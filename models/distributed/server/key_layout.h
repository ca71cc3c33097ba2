// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "rpc/codec.h"

namespace baton::dist {

// A dense key: a tensor of f32 by its name.
struct DenseKey {
  std::string name;
  Shape shape;
  static constexpr auto Fields() {
    return std::tuple{&DenseKey::name, &DenseKey::shape};
  }
};

// Elements of a key that lie together at one shard.
struct KeyPart {
  int32_t key = 0;
  int32_t shard = 0;
  int64_t begin = 0;  // in the key's elements, row-major
  int64_t count = 0;
  int64_t offset = 0;  // in those of the shard
  static constexpr auto Fields() {
    using P = KeyPart;
    return std::tuple{&P::key, &P::shard, &P::begin, &P::count, &P::offset};
  }
};

// Where the elements of dense keys are: each shard has its parts one after the
// other in one tensor, in which they also travel. Plain data.
struct KeyLayout {
  std::vector<DenseKey> keys;
  std::vector<KeyPart> parts;           // those of one shard together
  std::vector<int64_t> shard_elements;  // of each shard

  int shards() const { return static_cast<int>(shard_elements.size()); }
  // InvalidArgument where `tensors` are not the keys', in order.
  absl::Status Check(const std::vector<Tensor>& tensors) const;
  // From the keys' tensors to the shard's, f32 [shard_elements], and back.
  void Pack(int shard, const std::vector<Tensor>& tensors,
            const Tensor& flat) const;
  void Unpack(int shard, const Tensor& flat,
              const std::vector<Tensor>& tensors) const;

  static constexpr auto Fields() {
    return std::tuple{&KeyLayout::keys, &KeyLayout::parts,
                      &KeyLayout::shard_elements};
  }
};

// Cuts keys into parts of `part_bytes` at most and gives each, from the largest
// on, to the shard that has least. InvalidArgument for a name that two have.
absl::StatusOr<KeyLayout> PlanKeys(std::vector<DenseKey> keys, int shards,
                                   int64_t part_bytes);

// By a hash of the key.
int ShardOfRow(int64_t key, int shards);

}  // namespace baton::dist
