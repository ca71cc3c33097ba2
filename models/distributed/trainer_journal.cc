// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/trainer_journal.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/checkpoint.h"
#include "core/file.h"
#include "core/status.h"

namespace baton::dist {
namespace {

namespace fs = std::filesystem;

constexpr char kTraining[] = "training";
constexpr char kState[] = "state";
constexpr char kWriter[] = "writer", kKeepers[] = "keepers";
// An entry may vanish between listing and reading it, because an earlier
// trainer that is still running has written newer ones; the folder is then read
// again.
constexpr int kMostReadings = 100;

struct EntryFile {
  std::string path;
  uint64_t trainer = 0;
  int64_t step = 0;
};

std::string PathOf(const std::string& folder, uint64_t trainer, int64_t step) {
  return absl::StrCat(folder, "/trainer-", trainer, "-step-", step,
                      ".safetensors");
}

// Lists the journal's entries in the folder; ignores other files.
absl::StatusOr<std::vector<EntryFile>> FilesIn(const std::string& folder) {
  std::vector<EntryFile> files;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    unsigned long long trainer = 0;  // NOLINT(google-runtime-int): as scanf
    long long step = 0;              // NOLINT(google-runtime-int)
    const std::string name = file.path().filename();
    if (std::sscanf(name.c_str(), "trainer-%llu-step-%lld", &trainer, &step) !=
        2)
      continue;
    EntryFile entry{file.path(), trainer, step};
    if (entry.path == PathOf(folder, entry.trainer, entry.step))
      files.push_back(std::move(entry));
  }
  if (!error) return files;
  return absl::UnavailableError(
      absl::StrCat("cannot read ", folder, ": ", error.message()));
}

absl::StatusOr<JournalEntry> Read(const EntryFile& file) {
  ASSIGN_OR_RETURN(const SafeTensors read, ReadSafeTensors(file.path));
  const auto training = read.tensors.find(kTraining);
  if (training == read.tensors.end() || training->second.numel() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, " is not an entry of a trainer's journal"));
  }
  const auto text = [&read](const char* key) {
    const auto found = read.metadata.find(key);
    return found == read.metadata.end() ? std::string() : found->second;
  };
  return JournalEntry{
      .training =
          static_cast<uint64_t>(training->second.ToVector<int64_t>().front()),
      .trainer = file.trainer,
      .step = file.step,
      .state = PartOf(read.tensors, kState),
      .writer = text(kWriter),
      .keepers = absl::StrSplit(text(kKeepers), ',', absl::SkipEmpty())};
}

absl::Status WriteEntry(const std::string& path, const JournalEntry& entry) {
  SafeTensors content;
  content.tensors = AsPart(kState, entry.state);
  content.tensors[kTraining] =
      Tensor::From<int64_t>({static_cast<int64_t>(entry.training)});
  content.metadata[kWriter] = entry.writer;
  content.metadata[kKeepers] = absl::StrJoin(entry.keepers, ",");
  const absl::Status written = WriteSafeTensors(path, content).status();
  // PermissionDenied is only for trainers whose training another has taken
  // over.
  return written.ok() ? written : absl::UnavailableError(written.message());
}

// Returns the latest trainer's entries, by step.
absl::StatusOr<std::vector<JournalEntry>> ReadLatest(
    const std::string& folder) {
  ASSIGN_OR_RETURN(std::vector<EntryFile> files, FilesIn(folder));
  uint64_t latest = 0;
  for (const EntryFile& file : files) latest = std::max(latest, file.trainer);
  std::erase_if(files, [&](const EntryFile& f) { return f.trainer != latest; });
  std::sort(
      files.begin(), files.end(),
      [](const EntryFile& a, const EntryFile& b) { return a.step < b.step; });
  std::vector<JournalEntry> entries;
  for (const EntryFile& file : files) {
    ASSIGN_OR_RETURN(entries.emplace_back(), Read(file));
  }
  return entries;
}

absl::Status Remove(const EntryFile& file) {
  std::error_code error;
  fs::remove(file.path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot remove ", file.path, ": ", error.message()));
}

// Returns PermissionDenied if an entry of a trainer later than `trainer`
// exists.
absl::Status CheckLatest(const std::vector<EntryFile>& files,
                         uint64_t trainer) {
  const auto later = std::find_if(
      files.begin(), files.end(),
      [&](const EntryFile& file) { return file.trainer > trainer; });
  if (later == files.end()) return absl::OkStatus();
  const auto entry = Read(*later);
  return absl::PermissionDeniedError(absl::StrCat(
      entry.ok() && !entry->writer.empty() ? entry->writer : "another trainer",
      " has taken over the training, which this trainer no longer commands"));
}

}  // namespace

absl::StatusOr<TrainerJournal> TrainerJournal::Open(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", folder, ": ", error.message()));
  }
  auto found = ReadLatest(folder);
  for (int i = 0; i < kMostReadings && absl::IsNotFound(found.status()); ++i)
    found = ReadLatest(folder);
  RETURN_IF_ERROR(found.status());
  TrainerJournal journal(folder);
  journal.found_ = *std::move(found);
  return journal;
}

absl::Status TrainerJournal::Begin(uint64_t training) const {
  // If two processes begin at the same time, only one of them creates the link.
  const EntryFile aside{absl::StrCat(folder_, "/training-", training)};
  const std::string path = PathOf(folder_, 0, 0);
  RETURN_IF_ERROR(WriteEntry(aside.path, {.training = training}));
  std::error_code error;
  fs::create_hard_link(aside.path, path, error);
  if (error && error != std::errc::file_exists) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", path, ": ", error.message()));
  }
  RETURN_IF_ERROR(Remove(aside));
  FlushFolder(folder_);
  return absl::OkStatus();
}

absl::Status TrainerJournal::Check(uint64_t trainer) const {
  ASSIGN_OR_RETURN(const std::vector<EntryFile> files, FilesIn(folder_));
  return CheckLatest(files, trainer);
}

absl::Status TrainerJournal::Write(const JournalEntry& entry,
                                   int64_t before) const {
  ASSIGN_OR_RETURN(const std::vector<EntryFile> files, FilesIn(folder_));
  RETURN_IF_ERROR(CheckLatest(files, entry.trainer));
  RETURN_IF_ERROR(
      WriteEntry(PathOf(folder_, entry.trainer, entry.step), entry));
  for (const EntryFile& file : files) {
    const bool own = file.trainer == entry.trainer;
    const bool kept = file.step == entry.step || file.step == before;
    if (file.trainer < entry.trainer || (own && !kept))
      RETURN_IF_ERROR(Remove(file));
  }
  return absl::OkStatus();
}

absl::Status TrainerJournal::Clear(uint64_t trainer) const {
  ASSIGN_OR_RETURN(const std::vector<EntryFile> files, FilesIn(folder_));
  for (const EntryFile& file : files)
    if (file.trainer <= trainer) RETURN_IF_ERROR(Remove(file));
  return absl::OkStatus();
}

}  // namespace baton::dist
