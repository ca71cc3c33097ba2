// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"

namespace baton::data {

// Returns the tensor in an IDX file of unsigned bytes, plain or gzipped: u8,
// with the extents in the file's header. DataLoss for another format or a wrong
// size.
absl::StatusOr<Tensor> ReadIdx(const std::string& path);

// A data set in a pair of IDX files, such as MNIST. Images are u8 [1, H, W];
// classes are "0", "1", ... up to the largest label. Thread-safe.
class IdxDataset final : public Dataset {
 public:
  static absl::StatusOr<std::shared_ptr<IdxDataset>> Open(
      const std::string& images_path, const std::string& labels_path);

  int64_t size() const override { return images_.dim(0); }
  absl::StatusOr<Sample> Get(int64_t index) const override;
  std::string Describe(int64_t index) const override;
  const std::vector<std::string>& classes() const override { return classes_; }

 private:
  IdxDataset(std::string path, Tensor images, Tensor labels);
  const std::string path_;
  const Tensor images_;  // u8 [N, H, W]
  const Tensor labels_;  // u8 [N]
  std::vector<std::string> classes_;
};

}  // namespace baton::data
