// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint_manifest.h"

#include <nlohmann/json.hpp>

#include "core/status.h"

namespace baton {
namespace {

using ManifestJson = nlohmann::json;

constexpr char kManifestFormat[] = "baton-checkpoint";
constexpr uint64_t kManifestVersion = 1;
constexpr uint64_t kMostHeaderBytes = 100'000'000;
// The depth of a manifest; deeper JSON could overflow the stack.
constexpr int kManifestDepth = 6;

absl::StatusOr<uint64_t> Number(const ManifestJson& json, uint64_t most) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > most)
    return absl::DataLossError("a number of the manifest is out of range");
  return json.get<uint64_t>();
}

absl::StatusOr<Shard> ParseShard(const ManifestJson& json) {
  Shard shard;
  shard.file = json.at("file").get<std::string>();
  if (shard.file.empty() || shard.file.find('/') != std::string::npos)
    return absl::DataLossError("a shard is not in the step's folder");
  shard.index.header = json.at("header").dump();
  ASSIGN_OR_RETURN(const uint64_t bytes,
                   Number(json.at("header_bytes"), kMostHeaderBytes));
  if (bytes < shard.index.header.size())
    return absl::DataLossError("a shard's header is not as long as it says");
  shard.index.header.resize(bytes, ' ');
  for (const auto& [name, sum] : json.at("crc32").items()) {
    ASSIGN_OR_RETURN(const uint64_t number, Number(sum, UINT32_MAX));
    shard.index.checksums[name] = static_cast<uint32_t>(number);
  }
  return shard;
}

absl::StatusOr<Manifest> ParseAll(const ManifestJson& json) {
  if (json.at("format").get<std::string>() != kManifestFormat)
    return absl::DataLossError("not the manifest of a checkpoint");
  ASSIGN_OR_RETURN(const uint64_t version,
                   Number(json.at("version"), UINT32_MAX));
  if (version != kManifestVersion) {
    return absl::DataLossError(
        absl::StrCat("the manifest has version ", version, "; this program ",
                     "reads version ", kManifestVersion));
  }
  Manifest manifest;
  ASSIGN_OR_RETURN(const uint64_t step, Number(json.at("step"), INT64_MAX));
  manifest.draft.step = static_cast<int64_t>(step);
  manifest.draft.id = json.at("id").get<std::string>();
  for (const ManifestJson& shard : json.at("shards")) {
    ASSIGN_OR_RETURN(manifest.shards.emplace_back(), ParseShard(shard));
  }
  return manifest;
}

}  // namespace

std::string ManifestText(const CheckpointDraft& draft,
                         const std::vector<Shard>& shards) {
  ManifestJson listed = ManifestJson::array();
  for (const Shard& shard : shards) {
    listed.push_back({{"file", shard.file},
                      {"header", ManifestJson::parse(shard.index.header)},
                      {"header_bytes", shard.index.header.size()},
                      {"crc32", shard.index.checksums}});
  }
  const ManifestJson manifest = {{"format", kManifestFormat},
                                 {"version", kManifestVersion},
                                 {"step", draft.step},
                                 {"id", draft.id},
                                 {"shards", std::move(listed)}};
  return manifest.dump(1) + "\n";
}

absl::StatusOr<Manifest> ParseManifest(const std::string& text) {
  bool too_deep = false;
  const auto keep = [&](int depth, ManifestJson::parse_event_t,
                        const ManifestJson&) {
    if (depth > kManifestDepth) too_deep = true;
    return depth <= kManifestDepth;
  };
  try {
    const ManifestJson manifest = ManifestJson::parse(text, keep);
    if (too_deep)
      return absl::DataLossError("the manifest is nested too deeply");
    return ParseAll(manifest);
  } catch (const ManifestJson::exception& error) {
    return absl::DataLossError(
        absl::StrCat("not the manifest of a checkpoint: ", error.what()));
  }
}

}  // namespace baton
