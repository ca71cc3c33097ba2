// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"

namespace baton::data {

// JPEG images with one folder for each class: the folder that holds an image
// names its class. Classes are numbered in the order of their names, and images
// are in the order of their paths. The folders may also be in one archive (see
// IsArchiveName), which is read once and whose images are kept compressed in
// memory. Hidden files and those other than .jpg and .jpeg are ignored. Images
// are u8 [3, H, W]. Thread-safe.
class ImageFolder final : public Dataset {
 public:
  // NotFound if the path does not exist or holds no image; DataLoss if the
  // archive is broken.
  static absl::StatusOr<std::shared_ptr<ImageFolder>> Open(
      const std::string& path);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  absl::StatusOr<Sample> Get(int64_t index) const override;
  std::string Describe(int64_t index) const override;
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  struct File {
    std::string name;   // a path, or the name in the archive
    std::string bytes;  // empty: on disk
    int64_t label = 0;
  };
  ImageFolder(std::string path, std::vector<File> files);

  const std::string path_;
  std::vector<File> files_;
  std::vector<std::string> classes_;
  const bool in_memory_;
};

}  // namespace baton::data
