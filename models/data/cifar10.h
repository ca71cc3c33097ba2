// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"

namespace baton::data {

enum class Split { kTrain, kTest };

// CIFAR-10's binary form (Krizhevsky, "Learning multiple layers of features
// from tiny images", 2009): records of a label byte and 3 x 32 x 32 bytes.
// Images are u8 [3, 32, 32]. Thread-safe.
class Cifar10 final : public Dataset {
 public:
  // `path`: one .bin file, which is used whatever `split` is, or a folder or
  // archive with data_batch_1.bin ... data_batch_5.bin and test_batch.bin.
  // NotFound names the missing file; DataLoss if a file's size is not a whole
  // number of records, or a label is above 9.
  static absl::StatusOr<std::shared_ptr<Cifar10>> Open(const std::string& path,
                                                       Split split);

  int64_t size() const override;
  absl::StatusOr<Sample> Get(int64_t index) const override;
  std::string Describe(int64_t index) const override;
  const std::vector<std::string>& classes() const override;

 private:
  Cifar10(std::string path, std::string records);
  const std::string path_;
  const std::string records_;
};

}  // namespace baton::data
