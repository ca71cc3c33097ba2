// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/archive.h"
#include "models/data/jpeg.h"

namespace baton::data {
namespace {

namespace fs = std::filesystem;

bool IsImageName(const std::string& name) {
  const std::string file = fs::path(name).filename().string();
  return !file.empty() && file[0] != '.' &&
         (absl::EndsWithIgnoreCase(file, ".jpg") ||
          absl::EndsWithIgnoreCase(file, ".jpeg"));
}

std::string ClassOf(const std::string& name) {
  return fs::path(name).parent_path().filename().string();
}

absl::StatusOr<std::vector<std::string>> ListImages(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::follow_directory_symlink, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code unreadable;  // a dangling link is no image
    if (IsImageName(entry->path().string()) &&
        entry->is_regular_file(unreadable)) {
      names.push_back(entry->path().string());
    }
  }
  if (error)
    return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  return names;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ImageFolder>> ImageFolder::Open(
    const std::string& path) {
  std::vector<File> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    ASSIGN_OR_RETURN(std::vector<std::string> names, ListImages(path));
    for (std::string& name : names) files.push_back({std::move(name), "", 0});
  } else {
    ASSIGN_OR_RETURN(std::vector<ArchiveEntry> entries,
                     ReadArchive(path, IsImageName));
    for (ArchiveEntry& entry : entries)
      files.push_back({std::move(entry.name), std::move(entry.bytes), 0});
  }
  if (files.empty())
    return absl::NotFoundError(absl::StrCat(
        path, ": no .jpg or .jpeg in it, expected a folder of class folders"));
  return std::shared_ptr<ImageFolder>(new ImageFolder(path, std::move(files)));
}

ImageFolder::ImageFolder(std::string path, std::vector<File> files)
    : path_(std::move(path)),
      files_(std::move(files)),
      in_memory_(!fs::is_directory(path_)) {
  std::sort(files_.begin(), files_.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  std::set<std::string> names;
  for (const File& file : files_) names.insert(ClassOf(file.name));
  classes_.assign(names.begin(), names.end());
  for (File& file : files_) {
    const auto at =
        std::lower_bound(classes_.begin(), classes_.end(), ClassOf(file.name));
    file.label = at - classes_.begin();
  }
}

std::string ImageFolder::Describe(int64_t index) const {
  const std::string& name = files_[static_cast<size_t>(index)].name;
  return in_memory_ ? absl::StrCat(path_, ": ", name) : name;
}

absl::StatusOr<Sample> ImageFolder::Get(int64_t index) const {
  const File& file = files_[static_cast<size_t>(index)];
  Sample sample = {.image = Tensor(), .label = file.label};
  if (in_memory_) {
    ASSIGN_OR_RETURN(sample.image, DecodeJpeg(file.bytes, Describe(index)));
  } else {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file.name));
    ASSIGN_OR_RETURN(sample.image, DecodeJpeg(bytes, file.name));
  }
  return sample;
}

}  // namespace baton::data
