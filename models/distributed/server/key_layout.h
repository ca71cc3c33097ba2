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

// A dense key: a named tensor of f32.
struct DenseKey {
  std::string name;
  Shape shape;
  static constexpr auto Fields() {
    return std::tuple{&DenseKey::name, &DenseKey::shape};
  }
};

// A range of a key's elements at one shard.
struct KeyPart {
  int32_t key = 0;
  int32_t shard = 0;
  int64_t begin = 0;  // index into the key's elements, row-major
  int64_t count = 0;
  int64_t offset = 0;  // index into the shard's elements
  static constexpr auto Fields() {
    using P = KeyPart;
    return std::tuple{&P::key, &P::shard, &P::begin, &P::count, &P::offset};
  }
};

// Where the elements of dense keys are. Each shard has its parts one after the
// other in one tensor, which is also how they are sent. Plain data.
struct KeyLayout {
  std::vector<DenseKey> keys;
  std::vector<KeyPart> parts;           // the parts of one shard are adjacent
  std::vector<int64_t> shard_elements;  // of each shard

  int shards() const { return static_cast<int>(shard_elements.size()); }
  // Returns InvalidArgument if `tensors` do not match the keys, in order.
  absl::Status Check(const std::vector<Tensor>& tensors) const;
  // Copies between the keys' tensors and the shard's, f32 [shard_elements].
  void Pack(int shard, const std::vector<Tensor>& tensors,
            const Tensor& flat) const;
  void Unpack(int shard, const Tensor& flat,
              const std::vector<Tensor>& tensors) const;

  static constexpr auto Fields() {
    return std::tuple{&KeyLayout::keys, &KeyLayout::parts,
                      &KeyLayout::shard_elements};
  }
};

// Cuts keys into parts of at most `part_bytes`, and assigns them, the largest
// first, to the shard that has the least. Returns InvalidArgument for a
// duplicate name.
absl::StatusOr<KeyLayout> PlanKeys(std::vector<DenseKey> keys, int shards,
                                   int64_t part_bytes);

// Returns the shard of a row, by a hash of its key.
int ShardOfRow(int64_t key, int shards);

}  // namespace baton::dist
