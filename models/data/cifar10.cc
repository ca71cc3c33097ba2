// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/cifar10.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "models/data/archive.h"

namespace baton::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPixels = 3 * 32 * 32;
constexpr size_t kRecord = 1 + kPixels;

bool IsPartOf(const std::string& name, Split split) {
  const std::string file = fs::path(name).filename().string();
  if (split == Split::kTest) return file == "test_batch.bin";
  return absl::StartsWith(file, "data_batch_") && absl::EndsWith(file, ".bin");
}

absl::StatusOr<std::vector<ArchiveEntry>> ReadFolder(const std::string& folder,
                                                     Split split) {
  std::vector<ArchiveEntry> parts;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().string();
    if (!IsPartOf(name, split)) continue;
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(name));
    parts.push_back({name, std::move(bytes)});
  }
  if (error)
    return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  return parts;
}

absl::StatusOr<std::vector<ArchiveEntry>> ReadParts(const std::string& path,
                                                    Split split) {
  std::error_code error;
  if (fs::is_directory(path, error)) return ReadFolder(path, split);
  if (IsArchiveName(path)) {
    return ReadArchive(path, [split](const std::string& name) {
      return IsPartOf(name, split);
    });
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  return std::vector<ArchiveEntry>{{path, std::move(bytes)}};
}

absl::Status CheckPart(const std::string& path, const ArchiveEntry& part) {
  const std::string name =
      part.name == path || absl::StartsWith(part.name, path + "/")
          ? part.name
          : absl::StrCat(path, ": ", part.name);
  if (part.bytes.empty() || part.bytes.size() % kRecord != 0)
    return absl::DataLossError(absl::StrCat(
        name, ": ", part.bytes.size(),
        " bytes are no whole number of CIFAR-10 records of ", kRecord));
  for (size_t i = 0; i < part.bytes.size(); i += kRecord) {
    if (static_cast<unsigned char>(part.bytes[i]) > 9)
      return absl::DataLossError(
          absl::StrCat(name, ": record ", i / kRecord, " has the label ",
                       static_cast<unsigned char>(part.bytes[i])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<Cifar10>> Cifar10::Open(const std::string& path,
                                                       Split split) {
  ASSIGN_OR_RETURN(std::vector<ArchiveEntry> parts, ReadParts(path, split));
  if (parts.empty())
    return absl::NotFoundError(absl::StrCat(
        path, ": no ",
        split == Split::kTest ? "test_batch.bin" : "data_batch_1.bin",
        " in it"));
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string records;
  for (const ArchiveEntry& part : parts) {
    RETURN_IF_ERROR(CheckPart(path, part));
    records += part.bytes;
  }
  return std::shared_ptr<Cifar10>(new Cifar10(path, std::move(records)));
}

Cifar10::Cifar10(std::string path, std::string records)
    : path_(std::move(path)), records_(std::move(records)) {}

int64_t Cifar10::size() const {
  return static_cast<int64_t>(records_.size() / kRecord);
}

absl::StatusOr<Sample> Cifar10::Get(int64_t index) const {
  const char* record = records_.data() + static_cast<size_t>(index) * kRecord;
  Sample sample = {.image = Tensor::Empty({3, 32, 32}, {.dtype = DType::kU8}),
                   .label = static_cast<unsigned char>(record[0])};
  std::memcpy(sample.image.data<uint8_t>(), record + 1, kPixels);
  return sample;
}

std::string Cifar10::Describe(int64_t index) const {
  return absl::StrCat(path_, ": record ", index);
}

const std::vector<std::string>& Cifar10::classes() const {
  static const std::vector<std::string> names = {
      "airplane", "automobile", "bird",  "cat",  "deer",
      "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

}  // namespace baton::data
