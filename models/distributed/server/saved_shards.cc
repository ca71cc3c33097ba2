// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/saved_shards.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/distributed/checkpoint_shard.h"

namespace baton::dist {
namespace {

constexpr char kOptimizerPart[] = "optimizer";
constexpr char kVersions[] = "servers.versions";
constexpr char kSteps[] = "servers.steps";

// Returns uninitialized tensors of the keys' shapes.
std::vector<Tensor> EmptyKeys(const KeyLayout& layout) {
  std::vector<Tensor> tensors;
  for (const DenseKey& key : layout.keys)
    tensors.push_back(Tensor::Empty(key.shape));
  return tensors;
}

std::string NameOf(const DenseKey& key, const ops::StateSlot* slot) {
  return slot == nullptr
             ? absl::StrCat(kModelPart, ".", key.name)
             : absl::StrCat(kOptimizerPart, ".", key.name, ".", slot->name);
}

// Saves all keys' tensors; `part_of` returns each shard's part.
template <typename PartOf>
void Add(const KeyLayout& layout, const ops::StateSlot* slot,
         const PartOf& part_of, NamedTensors& saved) {
  const std::vector<Tensor> tensors = EmptyKeys(layout);
  for (int shard = 0; shard < layout.shards(); ++shard) {
    layout.Unpack(shard, part_of(static_cast<size_t>(shard)).To(Device::Cpu()),
                  tensors);
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    saved[NameOf(layout.keys[i], slot)] = tensors[i];
}

// Loads what Add saved; returns each shard's part.
absl::StatusOr<std::vector<Tensor>> Load(const KeyLayout& layout,
                                         const ops::StateSlot* slot,
                                         const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const DenseKey& key : layout.keys) names.push_back(NameOf(key, slot));
  ASSIGN_OR_RETURN(const NamedTensors read, checkpoint.Read(names));
  std::vector<Tensor> tensors;
  for (const std::string& name : names) tensors.push_back(read.at(name));
  RETURN_IF_ERROR(Annotate(layout.Check(tensors), checkpoint.path()));
  std::vector<Tensor> parts;
  for (int shard = 0; shard < layout.shards(); ++shard) {
    parts.push_back(
        Tensor::Empty({layout.shard_elements[static_cast<size_t>(shard)]}));
    layout.Pack(shard, tensors, parts.back());
  }
  return parts;
}

std::string RowsName(int64_t shard, const std::string& table,
                     const char* what) {
  return absl::StrCat("rows.", shard, ".", table, ".", what);
}

// Adds the rows of one saved shard that now belong to `shard`.
absl::Status AddRows(const RowTableOptions& table, const NamedTensors& saved,
                     int64_t before, int32_t shard, int32_t shards,
                     std::vector<int64_t>& keys, std::vector<float>& records) {
  const Tensor& all = saved.at(RowsName(before, table.name, "keys"));
  const Tensor& values = saved.at(RowsName(before, table.name, "records"));
  const int64_t width = ShardTable::RecordOf(table);
  if (all.dtype() != DType::kI64 || values.dtype() != DType::kF32 ||
      values.shape() != Shape({all.numel(), width})) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of table ", table.name, " have ", width,
                     " elements with the state of their rule, not those of ",
                     values.ToString()));
  }
  const int64_t* key = all.data<int64_t>();
  const float* record = values.data<float>();
  for (int64_t i = 0; i < all.numel(); ++i, record += width) {
    if (ShardOfRow(table, key[i], shards) != shard) continue;
    keys.push_back(key[i]);
    records.insert(records.end(), record, record + width);
  }
  return absl::OkStatus();
}

absl::StatusOr<RowTableImage> LoadTable(const RowTableOptions& table,
                                        int32_t shard, int32_t shards,
                                        int64_t shards_before,
                                        const Checkpoint& checkpoint) {
  RowTableImage image;
  std::vector<int64_t> keys;
  std::vector<float> records;
  for (int64_t before = 0; before < shards_before; ++before) {
    ASSIGN_OR_RETURN(const NamedTensors saved,
                     checkpoint.Read({RowsName(before, table.name, "keys"),
                                      RowsName(before, table.name, "records"),
                                      RowsName(before, table.name, "steps")}));
    RETURN_IF_ERROR(
        AddRows(table, saved, before, shard, shards, keys, records));
    image.steps = std::max(
        image.steps,
        saved.at(RowsName(before, table.name, "steps")).data<int64_t>()[0]);
  }
  image.keys = Tensor::From(keys);
  image.records = Tensor::From(records).Reshape(
      {static_cast<int64_t>(keys.size()), ShardTable::RecordOf(table)});
  return image;
}

int64_t Largest(const Tensor& numbers) {
  const auto all = numbers.ToVector<int64_t>();
  return all.empty() ? 0 : *std::max_element(all.begin(), all.end());
}

}  // namespace

NamedTensors SavedForm(const ServerOptions& options, const KeyLayout& layout,
                       const std::vector<ShardImage>& images) {
  NamedTensors saved;
  Add(
      layout, nullptr, [&](size_t shard) { return images[shard].values; },
      saved);
  const std::vector<ops::StateSlot> slots = UsedSlots(options.rule);
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].name == nullptr) continue;
    Add(
        layout, &slots[slot],
        [&](size_t shard) { return images[shard].slots[slot]; }, saved);
  }
  std::vector<int64_t> versions, steps;
  for (const ShardImage& image : images) {
    versions.push_back(image.version);
    steps.push_back(image.steps);
  }
  saved[kVersions] = Tensor::From(versions);
  saved[kSteps] = Tensor::From(steps);
  return saved;
}

absl::StatusOr<std::vector<ShardImage>> LoadDense(
    const ServerOptions& options, const KeyLayout& layout,
    const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const NamedTensors counts,
                   checkpoint.Read({kVersions, kSteps}));
  ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                   Load(layout, nullptr, checkpoint));
  std::vector<ShardImage> images;
  for (const Tensor& of_shard : values) {
    images.push_back({.version = Largest(counts.at(kVersions)),
                      .values = of_shard,
                      .steps = Largest(counts.at(kSteps))});
  }
  for (const ops::StateSlot& slot : UsedSlots(options.rule)) {
    std::vector<Tensor> state(images.size());
    if (slot.name != nullptr) {
      ASSIGN_OR_RETURN(state, Load(layout, &slot, checkpoint));
    }
    for (size_t i = 0; i < images.size(); ++i)
      images[i].slots.push_back(state[i]);
  }
  return images;
}

NamedTensors SavedForm(const ServerOptions& options, int32_t shard,
                       const std::vector<RowTableImage>& tables) {
  NamedTensors saved;
  for (size_t i = 0; i < tables.size(); ++i) {
    const std::string& name = options.tables[i].name;
    saved[RowsName(shard, name, "keys")] = tables[i].keys;
    saved[RowsName(shard, name, "records")] = tables[i].records;
    saved[RowsName(shard, name, "steps")] =
        Tensor::From<int64_t>({tables[i].steps});
  }
  return saved;
}

absl::StatusOr<std::vector<RowTableImage>> LoadRows(
    const ServerOptions& options, int32_t shard, int32_t shards,
    const SavedRows& saved) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                   Checkpoint::Open(saved.folder, saved.step));
  ASSIGN_OR_RETURN(const NamedTensors counts, checkpoint.Read({kVersions}));
  std::vector<RowTableImage> tables;
  for (const RowTableOptions& table : options.tables) {
    ASSIGN_OR_RETURN(tables.emplace_back(),
                     LoadTable(table, shard, shards,
                               counts.at(kVersions).numel(), checkpoint));
  }
  return tables;
}

}  // namespace baton::dist
