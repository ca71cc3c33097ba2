// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/open.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status.h"
#include "models/data/archive.h"
#include "models/data/idx.h"
#include "models/data/image_folder.h"

namespace baton::data {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::shared_ptr<Dataset>> OpenIdx(const std::string& path) {
  const fs::path images(path);
  const std::string labels = absl::StrReplaceAll(
      images.filename().string(),
      {{"images-idx3", "labels-idx1"}, {"images.idx3", "labels.idx1"}});
  if (labels == images.filename().string())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": give the file of images, with images-idx3 in its name"));
  ASSIGN_OR_RETURN(auto dataset,
                   IdxDataset::Open(path, images.parent_path() / labels));
  return dataset;
}

bool IsIdxName(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  return absl::StrContains(file, "-idx") || absl::StrContains(file, ".idx") ||
         absl::EndsWith(file, "-ubyte");
}

}  // namespace

absl::StatusOr<std::shared_ptr<Dataset>> OpenDataset(const std::string& path,
                                                     Split split) {
  std::error_code error;
  if (!fs::exists(path, error))
    return absl::NotFoundError(absl::StrCat(path, ": no such file or folder"));
  const bool folder = fs::is_directory(path, error);
  if (!folder && IsIdxName(path)) return OpenIdx(path);
  if (!folder && !IsArchiveName(path) && !absl::EndsWith(path, ".bin"))
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": expected a folder or archive (.tar, .tgz, ...) of class folders "
        "of JPEGs, CIFAR-10's binary form, or an IDX file of images"));
  // Archives are taken for JPEGs first, which most hold: trying both formats
  // would read an archive twice.
  if (folder || absl::EndsWith(path, ".bin")) {
    auto cifar = Cifar10::Open(path, split);
    if (cifar.ok()) return std::shared_ptr<Dataset>(*cifar);
    if (!absl::IsNotFound(cifar.status())) return cifar.status();
  }
  auto images = ImageFolder::Open(path);
  if (images.ok()) return std::shared_ptr<Dataset>(*images);
  if (folder || !absl::IsNotFound(images.status())) return images.status();
  auto cifar = Cifar10::Open(path, split);
  if (cifar.ok()) return std::shared_ptr<Dataset>(*cifar);
  return absl::IsNotFound(cifar.status()) ? images.status() : cifar.status();
}

}  // namespace baton::data
