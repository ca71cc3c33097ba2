// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kMaxRank = 32;
constexpr char kMetadata[] = "__metadata__";

struct NamedDType {
  const char* name;
  DType dtype;
};
constexpr NamedDType kDTypes[] = {{"F32", DType::kF32}, {"F64", DType::kF64},
                                  {"F16", DType::kF16}, {"BF16", DType::kBF16},
                                  {"I32", DType::kI32}, {"I64", DType::kI64},
                                  {"U8", DType::kU8},   {"BOOL", DType::kBool}};

std::string FileName(DType dtype) {
  for (const NamedDType& entry : kDTypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "";
}

std::optional<DType> DTypeOf(const std::string& name) {
  for (const NamedDType& entry : kDTypes) {
    if (name == entry.name) return entry.dtype;
  }
  return std::nullopt;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

  absl::Status ReadAt(void* data, size_t bytes, uint64_t offset) const {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t n =
          pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
      if (n == 0) return absl::DataLossError("the file ends early");
      to += n;
      bytes -= static_cast<size_t>(n);
      offset += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Write(const void* data, size_t bytes) const {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = write(descriptor_, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
      from += n;
      bytes -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

 private:
  const int descriptor_;
};

// Where one tensor lies behind the header.
struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin, end;
};

absl::Status Broken(const std::string& name, const std::string& what) {
  return absl::DataLossError(absl::StrCat("tensor \"", name, "\": ", what));
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json) {
  const auto is_unsigned = [](const Json& j) { return j.is_number_unsigned(); };
  if (!json.is_object() || !json.contains("dtype") ||
      !json["dtype"].is_string() || !json.contains("shape") ||
      !json["shape"].is_array() || !json.contains("data_offsets") ||
      !json["data_offsets"].is_array() || json["data_offsets"].size() != 2 ||
      !std::all_of(json["shape"].begin(), json["shape"].end(), is_unsigned) ||
      !std::all_of(json["data_offsets"].begin(), json["data_offsets"].end(),
                   is_unsigned)) {
    return Broken(name, "the header lacks dtype, shape or data_offsets");
  }
  const auto dtype_name = json["dtype"].get<std::string>();
  const std::optional<DType> dtype = DTypeOf(dtype_name);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor \"", name, "\": Baton has no dtype ", dtype_name));
  }
  if (json["shape"].size() > kMaxRank) {
    return Broken(name,
                  absl::StrCat("it has ", json["shape"].size(), " dimensions"));
  }
  Dims dims;
  for (const Json& dim : json["shape"]) dims.push_back(dim.get<int64_t>());
  Entry entry{.name = name,
              .dtype = *dtype,
              .shape = Shape(std::move(dims)),
              .begin = json["data_offsets"][0].get<uint64_t>(),
              .end = json["data_offsets"][1].get<uint64_t>()};
  uint64_t bytes = 0;
  const auto numel = CatchErrors(
      [&]() -> absl::StatusOr<int64_t> { return entry.shape.numel(); });
  if (!numel.ok() ||
      __builtin_mul_overflow(static_cast<uint64_t>(*numel), SizeOf(*dtype),
                             &bytes) ||
      entry.end < entry.begin || entry.end - entry.begin != bytes) {
    return Broken(name, "data_offsets do not fit shape and dtype");
  }
  return entry;
}

// Tensors must cover the data without gaps or overlaps.
absl::Status CheckCover(std::vector<Entry>& entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      return Broken(entry.name, "data_offsets leave a gap or overlap");
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    return absl::DataLossError(absl::StrCat("the header describes ", at,
                                            " bytes of data, the file ", "has ",
                                            data_bytes));
  }
  return absl::OkStatus();
}

absl::Status ParseMetadata(const Json& json, SafeTensors& content) {
  if (!json.is_object()) {
    return absl::DataLossError("__metadata__ is not an object");
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return absl::DataLossError("__metadata__ holds more than strings");
    }
    content.metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Any bits but 0 and 1 are not a bool.
absl::Status CheckBools(const std::string& name, const Tensor& tensor) {
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
  if (std::any_of(bytes, bytes + tensor.nbytes(),
                  [](uint8_t byte) { return byte > 1; })) {
    return Broken(name, "a BOOL is neither 0 nor 1");
  }
  return absl::OkStatus();
}

absl::StatusOr<SafeTensors> Read(const File& file, uint64_t file_bytes) {
  uint8_t prefix[8];
  if (file_bytes < sizeof(prefix)) {
    return absl::DataLossError("too short for a safetensors file");
  }
  RETURN_IF_ERROR(file.ReadAt(prefix, sizeof(prefix), 0));
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | prefix[i];
  if (header_bytes > std::min(kMaxHeader, file_bytes - sizeof(prefix))) {
    return absl::DataLossError(
        absl::StrCat("not a safetensors file: it claims a header of ",
                     header_bytes, " bytes"));
  }
  std::string text(header_bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(text.data(), text.size(), sizeof(prefix)));
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) {
    return absl::DataLossError("the header is not a JSON object");
  }
  SafeTensors content;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(ParseMetadata(json, content));
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, json));
    entries.push_back(std::move(entry));
  }
  const uint64_t start = sizeof(prefix) + header_bytes;
  RETURN_IF_ERROR(CheckCover(entries, file_bytes - start));
  for (const Entry& entry : entries) {
    const Tensor tensor = Tensor::Empty(entry.shape, {.dtype = entry.dtype});
    RETURN_IF_ERROR(
        file.ReadAt(tensor.raw_data(), tensor.nbytes(), start + entry.begin));
    if (entry.dtype == DType::kBool) {
      RETURN_IF_ERROR(CheckBools(entry.name, tensor));
    }
    content.tensors[entry.name] = tensor;
  }
  return content;
}

using NamedTensor = std::pair<std::string, Tensor>;

// Widest dtype first, so that every tensor is aligned in a mapped file.
std::vector<NamedTensor> FileOrder(const SafeTensors& content) {
  std::vector<NamedTensor> order(content.tensors.begin(),
                                 content.tensors.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) {
                     return SizeOf(a.second.dtype()) > SizeOf(b.second.dtype());
                   });
  return order;
}

std::string HeaderText(const SafeTensors& content,
                       const std::vector<NamedTensor>& order) {
  Json header = Json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  uint64_t at = 0;
  for (const auto& [name, tensor] : order) {
    const std::vector<int64_t> shape(tensor.shape().begin(),
                                     tensor.shape().end());
    header[name] = {{"dtype", FileName(tensor.dtype())},
                    {"shape", shape},
                    {"data_offsets", {at, at + tensor.nbytes()}}};
    at += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

absl::Status WriteAll(const File& file, const std::string& header,
                      const std::vector<NamedTensor>& order) {
  uint8_t prefix[8];
  for (int i = 0; i < 8; ++i) {
    prefix[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  }
  RETURN_IF_ERROR(file.Write(prefix, sizeof(prefix)));
  RETURN_IF_ERROR(file.Write(header.data(), header.size()));
  for (const auto& [name, tensor] : order) {
    const Tensor dense = tensor.To(Device::Cpu()).Contiguous();
    RETURN_IF_ERROR(file.Write(dense.raw_data(), dense.nbytes()));
  }
  if (fsync(file.descriptor()) != 0) {
    return absl::ErrnoToStatus(errno, "cannot flush");
  }
  return absl::OkStatus();
}

absl::Status CheckContent(const SafeTensors& content) {
  for (const auto& [name, tensor] : content.tensors) {
    if (name == kMetadata || !tensor.defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", name, "\" is ",
                       tensor.defined() ? "a reserved name" : "undefined"));
    }
  }
  return absl::OkStatus();
}

// The rename itself survives a crash once the directory is flushed.
void FlushDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const File file(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.descriptor() >= 0) fsync(file.descriptor());
}

absl::Status WriteThrough(const std::string& path, const std::string& temporary,
                          const SafeTensors& content) {
  RETURN_IF_ERROR(CheckContent(content));
  const std::vector<NamedTensor> order = FileOrder(content);
  std::string header;
  try {
    header = HeaderText(content, order);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("a name or metadata is not UTF-8");
  }
  const File file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.descriptor() < 0) {
    return absl::ErrnoToStatus(errno, "cannot create");
  }
  absl::Status status =
      CatchErrors([&] { return WriteAll(file, header, order); });
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "cannot rename");
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  FlushDirectoryOf(path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafeTensors> ReadSafeTensors(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.descriptor() < 0) {
    return Annotate(absl::ErrnoToStatus(errno, "cannot open"), path);
  }
  struct stat info {};
  if (fstat(file.descriptor(), &info) != 0) {
    return Annotate(absl::ErrnoToStatus(errno, "cannot stat"), path);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a file"));
  }
  auto content = CatchErrors(
      [&] { return Read(file, static_cast<uint64_t>(info.st_size)); });
  if (!content.ok()) return Annotate(content.status(), path);
  return content;
}

absl::Status WriteSafeTensors(const std::string& path,
                              const SafeTensors& content) {
  static std::atomic<int> counter{0};
  const std::string temporary =
      absl::StrCat(path, ".", getpid(), ".", counter++, ".tmp");
  return Annotate(WriteThrough(path, temporary, content), path);
}

}  // namespace baton
