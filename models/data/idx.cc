// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/idx.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/archive.h"

namespace baton::data {
namespace {

constexpr int kUnsignedByte = 8;  // the format's code for the element type
constexpr int64_t kMaxElements = int64_t{1} << 40;

int64_t BigEndian32(const char* bytes) {
  int64_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

absl::StatusOr<Tensor> ReadIdx(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadUnpacked(path));
  const auto broken = [&path](const auto&... parts) {
    return absl::DataLossError(absl::StrCat(path, ": ", parts...));
  };
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0)
    return broken("is no IDX file");
  if (bytes[2] != kUnsignedByte)
    return broken("holds elements of IDX type ", static_cast<int>(bytes[2]),
                  ", expected unsigned bytes (8)");
  const size_t rank = static_cast<unsigned char>(bytes[3]);
  const size_t header = 4 + 4 * rank;
  if (rank == 0 || bytes.size() < header)
    return broken("its header breaks off");
  Dims dims;
  int64_t elements = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    dims.push_back(BigEndian32(&bytes[4 + 4 * axis]));
    if (dims.back() != 0 && elements > kMaxElements / dims.back())
      return broken("its extents overflow");
    elements *= dims.back();
  }
  if (bytes.size() - header != static_cast<size_t>(elements))
    return broken("has ", bytes.size() - header,
                  " bytes of data, its header says ", elements);
  return CatchErrors([&]() -> absl::StatusOr<Tensor> {
    Tensor values = Tensor::Empty(Shape(dims), {.dtype = DType::kU8});
    if (elements > 0)
      std::memcpy(values.raw_data(), bytes.data() + header,
                  bytes.size() - header);
    return values;
  });
}

absl::StatusOr<std::shared_ptr<IdxDataset>> IdxDataset::Open(
    const std::string& images_path, const std::string& labels_path) {
  ASSIGN_OR_RETURN(Tensor images, ReadIdx(images_path));
  ASSIGN_OR_RETURN(Tensor labels, ReadIdx(labels_path));
  if (images.rank() != 3 || images.numel() == 0)
    return absl::DataLossError(absl::StrCat(images_path,
                                            ": expected images [N, H, W], got ",
                                            images.shape().ToString()));
  if (labels.rank() != 1 || labels.dim(0) != images.dim(0))
    return absl::DataLossError(absl::StrCat(
        labels_path, ": labels ", labels.shape().ToString(),
        " do not go with the ", images.dim(0), " images of ", images_path));
  return std::shared_ptr<IdxDataset>(
      new IdxDataset(images_path, std::move(images), std::move(labels)));
}

IdxDataset::IdxDataset(std::string path, Tensor images, Tensor labels)
    : path_(std::move(path)),
      images_(std::move(images)),
      labels_(std::move(labels)) {
  const uint8_t* first = labels_.data<uint8_t>();
  const int largest = *std::max_element(first, first + labels_.numel());
  for (int label = 0; label <= largest; ++label)
    classes_.push_back(std::to_string(label));
}

absl::StatusOr<Sample> IdxDataset::Get(int64_t index) const {
  return Sample{.image = images_.Slice(0, index, index + 1),
                .label = labels_.data<uint8_t>()[index]};
}

std::string IdxDataset::Describe(int64_t index) const {
  return absl::StrCat(path_, ": image ", index);
}

}  // namespace baton::data
