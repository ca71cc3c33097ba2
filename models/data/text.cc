// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/text.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/archive.h"

namespace baton::data {
namespace {

constexpr char kTextOp[] = "byte_text";

Tensor BytesOf(const std::string& text) {
  const Tensor bytes =
      Tensor::Empty({static_cast<int64_t>(text.size())}, {.dtype = DType::kU8});
  std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  return bytes;
}

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator();
       at.increment(error)) {
    if (at->is_regular_file(error)) files.push_back(at->path().string());
  }
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot read ", folder, ": ", error.message()));
  if (files.empty())
    return absl::NotFoundError(
        absl::StrCat(folder, " is a folder without files"));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

ByteText::ByteText(const std::string& text) : bytes_(BytesOf(text)) {}

absl::StatusOr<ByteText> ByteText::Read(const std::string& path) {
  std::vector<std::string> files = {path};
  std::error_code none;  // ReadUnpacked reports a missing file
  if (std::filesystem::is_directory(path, none)) {
    ASSIGN_OR_RETURN(files, FilesIn(path));
  }
  std::string text;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string part, ReadUnpacked(file));
    text += part;
  }
  return ByteText(text);
}

ByteText ByteText::Part(int64_t begin, int64_t end) const {
  Require(begin >= 0 && begin <= end && end <= size(), kTextOp, "no bytes [",
          begin, ", ", end, ") of ", size());
  return ByteText(bytes_.Slice(0, begin, end));
}

TokenBatch ByteText::BatchAt(const Tensor& starts, int64_t length) const {
  const int64_t count = starts.numel();
  const TensorOptions options = {.dtype = DType::kI64};
  const TokenBatch batch = {Tensor::Empty({count, length}, options),
                            Tensor::Empty({count, length}, options)};
  const uint8_t* bytes = bytes_.data<uint8_t>();
  for (int64_t n = 0; n < count; ++n) {
    const uint8_t* from = bytes + starts.data<int64_t>()[n];
    std::copy_n(from, length, batch.ids.data<int64_t>() + n * length);
    std::copy_n(from + 1, length, batch.targets.data<int64_t>() + n * length);
  }
  return batch;
}

TokenBatch ByteText::Draw(int64_t count, int64_t length,
                          Generator& generator) const {
  Require(count >= 0 && length > 0 && length < size(), kTextOp,
          "no windows of ", length, " tokens and the next one in ", size(),
          " bytes");
  return BatchAt(RandInt(0, size() - length, {count}, generator), length);
}

int64_t ByteText::windows(int64_t length) const {
  return length > 0 && size() > 0 ? (size() - 1) / length : 0;
}

TokenBatch ByteText::Windows(int64_t first, int64_t count,
                             int64_t length) const {
  Require(first >= 0 && count >= 0 && first + count <= windows(length), kTextOp,
          "no windows ", first, " to ", first + count, " of ", windows(length));
  const Tensor starts = Tensor::Empty({count}, {.dtype = DType::kI64});
  for (int64_t n = 0; n < count; ++n)
    starts.data<int64_t>()[n] = (first + n) * length;
  return BatchAt(starts, length);
}

}  // namespace baton::data
