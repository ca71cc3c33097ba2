// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/checkpoint_manifest.h"
#include "core/safetensors.h"
#include "core/status.h"
#include "models/data/archive.h"
#include "models/data/cifar10.h"
#include "models/data/idx.h"
#include "models/data/jpeg.h"
#include "tests/fuzz/targets.h"

// Checkpoints and data sets.
namespace baton::fuzz {
namespace {

// Bytes with a path, in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes)
      : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    BATON_CHECK(descriptor_ >= 0);
    BATON_CHECK(write(descriptor_, bytes.data(), bytes.size()) ==
                static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const {
    return absl::StrCat("/proc/self/fd/", descriptor_);
  }

 private:
  const int descriptor_;
};

// Reads every byte, as whoever uses it would.
uint64_t Sum(const Tensor& tensor) {
  const Tensor dense = tensor.Contiguous();
  const auto* bytes = static_cast<const uint8_t*>(dense.raw_data());
  const size_t size = dense.nbytes();
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += bytes[i];
  return sum;
}

}  // namespace

bool SafeTensorsFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto content = ReadSafeTensors(file.path());
  if (!content.ok()) return false;
  size_t total = 0;
  for (const auto& [name, tensor] : content->tensors) {
    (void)Sum(tensor);
    total += tensor.nbytes();
  }
  BATON_CHECK(total <= bytes.size());
  return true;
}

bool CheckpointManifest(const std::string& bytes) {
  const auto manifest = ParseManifest(bytes);
  if (!manifest.ok()) return false;
  // What is written of it says the same.
  const auto again =
      ParseManifest(ManifestText(manifest->draft, manifest->shards));
  BATON_CHECK(again.ok() && again->shards.size() == manifest->shards.size());
  return true;
}

bool IdxFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto values = data::ReadIdx(file.path());
  if (values.ok()) (void)Sum(*values);
  const auto set = data::IdxDataset::Open(file.path(), file.path());
  if (set.ok()) (void)(*set)->Get(0);
  return values.ok();
}

bool ArchiveFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto entries = data::ReadArchive(
      file.path(),
      [](const std::string& name) { return name.size() % 2 == 0; });
  (void)data::ReadUnpacked(file.path());
  return entries.ok();
}

bool CifarFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto set = data::Cifar10::Open(file.path(), data::Split::kTrain);
  if (!set.ok()) return false;
  const auto last = (*set)->Get((*set)->size() - 1);
  BATON_CHECK(last.ok() && last->label < 10);
  (void)Sum(last->image);
  return true;
}

bool JpegFile(const std::string& bytes) {
  // No larger than what takes a fuzzer a moment.
  if (bytes.size() > 16384) return false;
  const auto image = data::DecodeJpeg(bytes, "fuzz");
  if (image.ok()) (void)Sum(*image);
  return image.ok();
}

}  // namespace baton::fuzz
