// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "models/data/cifar10.h"
#include "models/data/dataset.h"

namespace baton::data {

// Opens the data set at `path`. Its format is detected: CIFAR-10's binary form
// (a .bin file, or a folder or archive with such files), an IDX file of images
// whose labels lie beside it (images-idx3 in the name becomes labels-idx1), or
// JPEGs in a folder or archive of class folders. `split` is used only for
// CIFAR-10's binary form. Errors name the path and what was expected.
absl::StatusOr<std::shared_ptr<Dataset>> OpenDataset(
    const std::string& path, Split split = Split::kTrain);

}  // namespace baton::data
