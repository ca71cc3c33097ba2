// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checkpoint_manifest.h"
#include "core/file.h"
#include "core/status.h"

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr char kManifestFile[] = "manifest.json";
constexpr char kStepFolder[] = "step_";

std::string StepPath(const std::string& folder, int64_t step) {
  return fs::path(folder) / absl::StrCat(kStepFolder, step);
}

std::string NewId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

// Returns the step of a folder by its name; ignores other files.
std::optional<int64_t> StepNamed(const fs::path& path) {
  const std::string name = path.filename();
  int64_t step = 0;
  if (!absl::StartsWith(name, kStepFolder) ||
      !absl::SimpleAtoi(name.substr(sizeof kStepFolder - 1), &step))
    return std::nullopt;
  return step;
}

// Returns the steps, and whether each has a manifest.
std::map<int64_t, bool> StepFolders(const std::string& folder) {
  std::map<int64_t, bool> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (const auto step = StepNamed(entry.path()))
      steps[*step] = fs::exists(entry.path() / kManifestFile, error);
  }
  return steps;
}

// If the process dies in between, a folder without a manifest remains, but no
// torn checkpoint.
void RemoveStep(const std::string& path) {
  std::error_code error;
  fs::remove(fs::path(path) / kManifestFile, error);
  FlushFolder(path);
  fs::remove_all(path, error);
}

void RemoveOthers(const CheckpointDraft& draft,
                  const std::vector<Shard>& shards, int keep) {
  std::error_code error;
  std::set<std::string> ours = {kManifestFile};
  for (const Shard& shard : shards) ours.insert(shard.file);
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(draft.path, error)) {
    if (ours.count(entry.path().filename()) == 0)
      others.push_back(entry.path());
  }
  for (const fs::path& other : others) fs::remove(other, error);
  const std::string folder = fs::path(draft.path).parent_path();
  int kept = 0;
  const std::map<int64_t, bool> steps = StepFolders(folder);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    const auto [step, whole] = *it;
    if (step > draft.step && whole) continue;
    if (step == draft.step || (whole && (keep == 0 || kept < keep))) {
      ++kept;
    } else {
      RemoveStep(StepPath(folder, step));
    }
  }
}

// Two workers may save copies of one parameter: equal ones count as one.
absl::Status CheckNames(const std::vector<Shard>& shards) {
  std::map<std::string, std::pair<uint32_t, const Shard*>> seen;
  for (const Shard& shard : shards) {
    for (const auto& [name, sum] : shard.index.checksums) {
      const auto [found, is_new] = seen.emplace(name, std::pair(sum, &shard));
      if (!is_new && found->second.first != sum) {
        return absl::InvalidArgumentError(
            absl::StrCat("the shards ", found->second.second->file, " and ",
                         shard.file, " have different tensors called ", name,
                         ": give what they are of different names"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointDraft> BeginCheckpoint(const std::string& folder,
                                                int64_t step) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no step ", step, " to save"));
  }
  CheckpointDraft draft{StepPath(folder, step), step, NewId()};
  std::error_code error;
  fs::create_directories(draft.path, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        draft.path, ": cannot make the folder: ", error.message()));
  }
  return draft;
}

absl::StatusOr<Shard> WriteShard(const CheckpointDraft& draft, int number,
                                 const NamedTensors& tensors) {
  Shard shard;
  shard.file = absl::StrCat("shard_", number, ".", draft.id, ".safetensors");
  const SafeTensors content{tensors,
                            {{"checkpoint", draft.id},
                             {"step", absl::StrCat(draft.step)},
                             {"shard", absl::StrCat(number)}}};
  ASSIGN_OR_RETURN(
      shard.index,
      WriteSafeTensors(fs::path(draft.path) / shard.file, content));
  return shard;
}

absl::Status FinishCheckpoint(const CheckpointDraft& draft,
                              const std::vector<Shard>& shards, int keep) {
  RETURN_IF_ERROR(Annotate(CheckNames(shards), draft.path));
  for (const Shard& shard : shards) {
    const fs::path path = fs::path(draft.path) / shard.file;
    std::error_code error;
    if (!fs::exists(path, error)) {
      return absl::NotFoundError(
          absl::StrCat(path.string(),
                       ": this shard was written by a worker, but is not "
                       "here: all have to see the same folder"));
    }
  }
  FlushFolder(fs::path(draft.path).parent_path());
  const std::string path = fs::path(draft.path) / kManifestFile;
  const std::string text = ManifestText(draft, shards);
  RETURN_IF_ERROR(Annotate(ReplaceFile(path,
                                       [&](FileWriter& file) {
                                         return file.Write(text.data(),
                                                           text.size());
                                       }),
                           path));
  RemoveOthers(draft, shards, keep);
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder,
                                            int64_t step) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  checkpoint.path_ = StepPath(folder, step);
  checkpoint.step_ = step;
  const std::string path = fs::path(checkpoint.path_) / kManifestFile;
  const auto file = File::Open(path);
  if (!file.ok()) return Annotate(file.status(), path);
  ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  std::string text(bytes, '\0');
  absl::Status status = file->ReadAt(text.data(), text.size(), 0);
  if (status.ok()) status = checkpoint.Parse(text);
  if (!status.ok()) return checkpoint.Broken(Annotate(status, path));
  return checkpoint;
}

absl::Status Checkpoint::Parse(const std::string& text) {
  ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(text));
  if (manifest.draft.step != step_) {
    return absl::DataLossError(
        absl::StrCat("the manifest is of step ", manifest.draft.step));
  }
  shards_ = std::move(manifest.shards);
  for (size_t i = 0; i < shards_.size(); ++i) {
    for (const auto& [name, sum] : shards_[i].index.checksums)
      shard_of_.emplace(name, i);
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::Broken(const absl::Status& status) const {
  std::optional<int64_t> before;
  for (const int64_t step : CheckpointSteps(folder_))
    if (step < step_) before = step;
  return absl::DataLossError(absl::StrCat(
      status.message(), ": the checkpoint of step ", step_, " is broken; ",
      before ? absl::StrCat("resume from that of step ", *before,
                            ", the one before it")
             : "there is none before it"));
}

std::vector<std::string> Checkpoint::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : shard_of_) names.push_back(name);
  return names;
}

std::vector<std::string> Checkpoint::Names(const std::string& part) const {
  const std::string prefix = part + ".";
  std::vector<std::string> names;
  for (auto it = shard_of_.lower_bound(prefix);
       it != shard_of_.end() && absl::StartsWith(it->first, prefix); ++it)
    names.push_back(it->first);
  return names;
}

absl::StatusOr<NamedTensors> Checkpoint::Read(
    const std::vector<std::string>& names) const {
  std::vector<std::vector<std::string>> of_shard(shards_.size());
  for (const std::string& name : names) {
    const auto found = shard_of_.find(name);
    if (found == shard_of_.end()) {
      return absl::NotFoundError(
          absl::StrCat(path_, ": no shard has a tensor called ", name));
    }
    of_shard[found->second].push_back(name);
  }
  NamedTensors all;
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (of_shard[i].empty()) continue;
    auto read = ReadSafeTensors(fs::path(path_) / shards_[i].file,
                                shards_[i].index, of_shard[i]);
    if (absl::IsResourceExhausted(read.status())) return read.status();
    if (!read.ok()) return Broken(read.status());
    all.merge(*read);
  }
  return all;
}

absl::StatusOr<NamedTensors> Checkpoint::ReadPart(
    const std::string& part) const {
  ASSIGN_OR_RETURN(const NamedTensors named, Read(Names(part)));
  return PartOf(named, part);
}

NamedTensors AsPart(const std::string& part, const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, tensor] : tensors)
    named[absl::StrCat(part, ".", name)] = tensor;
  return named;
}

NamedTensors PartOf(const NamedTensors& tensors, const std::string& part) {
  const std::string prefix = part + ".";
  NamedTensors of_part;
  for (const auto& [name, tensor] : tensors)
    if (absl::StartsWith(name, prefix))
      of_part[name.substr(prefix.size())] = tensor;
  return of_part;
}

std::vector<int64_t> CheckpointSteps(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const auto& [step, whole] : StepFolders(folder))
    if (whole) steps.push_back(step);
  return steps;
}

absl::StatusOr<int64_t> ResumeFrom(
    const std::string& folder, IfBroken if_broken,
    const std::function<absl::Status(const Checkpoint&)>& load) {
  absl::Status status = absl::NotFoundError(
      absl::StrCat(folder, ": there is no checkpoint to resume from"));
  std::vector<int64_t> steps = CheckpointSteps(folder);
  for (; !steps.empty(); steps.pop_back()) {
    const auto checkpoint = Checkpoint::Open(folder, steps.back());
    status = checkpoint.ok() ? load(*checkpoint) : checkpoint.status();
    if (status.ok()) return steps.back();
    if (if_broken == IfBroken::kFail || !absl::IsDataLoss(status)) break;
  }
  return status;
}

absl::Status ExportPart(const Checkpoint& checkpoint, const std::string& part,
                        const std::string& path) {
  ASSIGN_OR_RETURN(const NamedTensors tensors, checkpoint.ReadPart(part));
  return WriteSafeTensors(path, {tensors, {{"format", "pt"}}}).status();
}

}  // namespace baton
