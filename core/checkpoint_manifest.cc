// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint_manifest.h"

#include <nlohmann/json.hpp>

#include "core/status.h"

namespace baton {
namespace {

using ManifestJson = nlohmann::json;

constexpr char kManifestFormat[] = "baton-checkpoint";
constexpr int kManifestVersion = 1;
constexpr size_t kMostHeaderBytes = 100'000'000;

absl::StatusOr<Shard> ParseShard(const ManifestJson& json) {
  Shard shard;
  shard.file = json.at("file").get<std::string>();
  if (shard.file.empty() || shard.file.find('/') != std::string::npos)
    return absl::DataLossError("a shard is not in the step's folder");
  shard.index.header = json.at("header").dump();
  const auto bytes = json.at("header_bytes").get<size_t>();
  if (bytes < shard.index.header.size() || bytes > kMostHeaderBytes)
    return absl::DataLossError("a shard's header is not as long as it says");
  shard.index.header.resize(bytes, ' ');
  for (const auto& [name, sum] : json.at("crc32").items())
    shard.index.checksums[name] = sum.get<uint32_t>();
  return shard;
}

absl::StatusOr<Manifest> ParseAll(const ManifestJson& json) {
  if (json.at("format").get<std::string>() != kManifestFormat)
    return absl::DataLossError("not the manifest of a checkpoint");
  if (const int version = json.at("version").get<int>();
      version != kManifestVersion) {
    return absl::DataLossError(
        absl::StrCat("the manifest has version ", version, "; this program ",
                     "reads version ", kManifestVersion));
  }
  Manifest manifest;
  manifest.draft.step = json.at("step").get<int64_t>();
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
  try {
    return ParseAll(ManifestJson::parse(text));
  } catch (const ManifestJson::exception& error) {
    return absl::DataLossError(
        absl::StrCat("not the manifest of a checkpoint: ", error.what()));
  }
}

}  // namespace baton
