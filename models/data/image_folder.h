// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"

namespace baton::data {

// JPEGs in a folder a class: the folder that holds an image names its class,
// classes are numbered by name, and images are in the order of their paths. The
// tree may also lie in one archive (see IsArchiveName), which is read once and
// kept as it is, compressed images and all. Files that are no .jpg or .jpeg,
// or hidden, are passed over. Images are u8 [3, H, W]. Thread-safe.
class ImageFolder final : public Dataset {
 public:
  // NotFound where there is nothing or no image; DataLoss for a broken archive.
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
