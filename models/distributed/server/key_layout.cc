// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/key_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::dist {
namespace {

constexpr int64_t kElement = sizeof(float);

std::vector<KeyPart> CutKeys(const std::vector<DenseKey>& keys,
                             int64_t part_bytes) {
  const int64_t most = std::max<int64_t>(1, part_bytes / kElement);
  std::vector<KeyPart> parts;
  for (size_t key = 0; key < keys.size(); ++key) {
    const int64_t all = keys[key].shape.numel();
    for (int64_t begin = 0; begin < all; begin += most) {
      parts.push_back({.key = static_cast<int32_t>(key),
                       .shard = 0,
                       .begin = begin,
                       .count = std::min(most, all - begin),
                       .offset = 0});
    }
  }
  return parts;
}

Tensor Flat(const Tensor& tensor) { return tensor.Reshape({-1}); }

}  // namespace

absl::Status KeyLayout::Check(const std::vector<Tensor>& tensors) const {
  if (tensors.size() != keys.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a tensor for each of ", keys.size(),
                     " keys, got ", tensors.size()));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.defined() && tensor.shape() == keys[i].shape &&
        IsFloating(tensor.dtype()))
      continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", keys[i].name, " is f32", keys[i].shape.ToString(), ", not ",
        tensor.defined() ? tensor.ToString() : std::string("nothing")));
  }
  return absl::OkStatus();
}

void KeyLayout::Pack(int shard, const std::vector<Tensor>& tensors,
                     const Tensor& flat) const {
  for (const KeyPart& part : parts) {
    if (part.shard != shard) continue;
    flat.Slice(0, part.offset, part.offset + part.count)
        .CopyFrom(Flat(tensors[static_cast<size_t>(part.key)])
                      .Slice(0, part.begin, part.begin + part.count));
  }
}

void KeyLayout::Unpack(int shard, const Tensor& flat,
                       const std::vector<Tensor>& tensors) const {
  for (const KeyPart& part : parts) {
    if (part.shard != shard) continue;
    const Tensor values = flat.Slice(0, part.offset, part.offset + part.count);
    const Tensor& target = tensors[static_cast<size_t>(part.key)];
    if (part.count == target.numel()) {
      target.CopyFrom(values.Reshape(target.shape()));
    } else if (target.IsContiguous()) {
      Flat(target)
          .Slice(0, part.begin, part.begin + part.count)
          .CopyFrom(values);
    } else {  // parts of another order of elements have no view
      const Tensor whole = target.Contiguous();
      Flat(whole)
          .Slice(0, part.begin, part.begin + part.count)
          .CopyFrom(values);
      target.CopyFrom(whole);
    }
  }
}

absl::StatusOr<KeyLayout> PlanKeys(std::vector<DenseKey> keys, int shards,
                                   int64_t part_bytes) {
  std::set<std::string> names;
  for (const DenseKey& key : keys) {
    if (names.insert(key.name).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two keys are called ", key.name));
  }
  KeyLayout layout{
      .keys = std::move(keys),
      .parts = {},
      .shard_elements = std::vector<int64_t>(static_cast<size_t>(shards), 0)};
  layout.parts = CutKeys(layout.keys, part_bytes);
  std::vector<KeyPart*> by_size;
  for (KeyPart& part : layout.parts) by_size.push_back(&part);
  std::stable_sort(
      by_size.begin(), by_size.end(),
      [](const KeyPart* a, const KeyPart* b) { return a->count > b->count; });
  auto& elements = layout.shard_elements;
  for (KeyPart* part : by_size) {
    const auto least = std::min_element(elements.begin(), elements.end());
    part->shard = static_cast<int32_t>(least - elements.begin());
    *least += part->count;
  }
  std::stable_sort(
      layout.parts.begin(), layout.parts.end(),
      [](const KeyPart& a, const KeyPart& b) { return a.shard < b.shard; });
  std::vector<int64_t> next(elements.size(), 0);
  for (KeyPart& part : layout.parts) {
    part.offset = next[static_cast<size_t>(part.shard)];
    next[static_cast<size_t>(part.shard)] += part.count;
  }
  return layout;
}

int ShardOfRow(int64_t key, int shards) {
  // SplitMix64's mixing, so that neighbours go to different shards.
  uint64_t x = static_cast<uint64_t>(key) + 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  x ^= x >> 31;
  return static_cast<int>(x % static_cast<uint64_t>(shards));
}

}  // namespace baton::dist
