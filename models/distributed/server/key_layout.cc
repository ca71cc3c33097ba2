// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/key_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/cpu/streaming_copy.h"
#include "core/status.h"
#include "models/distributed/server/in_parts.h"
#include "models/distributed/server/mix_bits.h"

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

Tensor Piece(const Tensor& flat, int64_t from, const KeyPart& piece) {
  return flat.Slice(0, from, from + piece.count);
}

// Returns the keys that have a part at the shard, flattened: views, or copies
// if their elements have another order.
std::vector<Tensor> FlatsOf(const KeyLayout& layout, int shard,
                            const std::vector<Tensor>& tensors) {
  std::vector<Tensor> flats(tensors.size());
  for (const KeyPart& part : layout.parts) {
    const auto key = static_cast<size_t>(part.key);
    if (part.shard == shard && !flats[key].defined())
      flats[key] = tensors[key].Reshape({-1});
  }
  return flats;
}

// Calls fn(piece) for pieces that cover all parts of the shard; uses several
// threads if there is much and all of it is in host memory.
void ForEachPiece(const KeyLayout& layout, int shard,
                  const std::vector<Tensor>& flats,
                  absl::FunctionRef<void(const KeyPart& piece)> fn) {
  const auto all = layout.shard_elements[static_cast<size_t>(shard)];
  const auto run = [&](int64_t first, int64_t last) {
    for (const KeyPart& part : layout.parts) {
      const int64_t begin = std::max(first, part.offset);
      const int64_t end = std::min(last, part.offset + part.count);
      if (part.shard != shard || begin >= end) continue;
      KeyPart piece = part;
      piece.begin += begin - part.offset;
      piece.offset = begin;
      piece.count = end - begin;
      fn(piece);
    }
  };
  const bool on_host =
      std::all_of(flats.begin(), flats.end(), [](const Tensor& tensor) {
        return !tensor.defined() || tensor.device().is_cpu();
      });
  if (on_host) {
    InParts(all, kElementsForThread, run);
  } else {
    run(0, all);
  }
}

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
  const std::vector<Tensor> flats = FlatsOf(*this, shard, tensors);
  ForEachPiece(*this, shard, flats, [&](const KeyPart& piece) {
    const Tensor from =
        Piece(flats[static_cast<size_t>(piece.key)], piece.begin, piece);
    const Tensor to = Piece(flat, piece.offset, piece);
    if (from.device().is_cpu() && from.dtype() == to.dtype()) {
      cpu::StreamingCopy(to.raw_data(), from.raw_data(), from.nbytes(),
                         flat.nbytes());
    } else {
      to.CopyFrom(from);
    }
  });
}

void KeyLayout::Unpack(int shard, const Tensor& flat,
                       const std::vector<Tensor>& tensors) const {
  const std::vector<Tensor> flats = FlatsOf(*this, shard, tensors);
  ForEachPiece(*this, shard, flats, [&](const KeyPart& piece) {
    Piece(flats[static_cast<size_t>(piece.key)], piece.begin, piece)
        .CopyFrom(Piece(flat, piece.offset, piece));
  });
  for (size_t key = 0; key < flats.size(); ++key) {
    const Tensor& tensor = tensors[key];
    if (flats[key].defined() && !tensor.IsContiguous())
      tensor.CopyFrom(flats[key].Reshape(tensor.shape()));
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
  // Mixes the bits so that neighboring keys go to different shards, and so that
  // the index of one shard (row_index.h) spreads its keys.
  const uint64_t bits =
      MixBits(static_cast<uint64_t>(key) + 0x9E3779B97F4A7C15);
  return static_cast<int>(bits % static_cast<uint64_t>(shards));
}

}  // namespace baton::dist
