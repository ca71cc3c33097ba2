// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/cpu/crc32.h"
#include "core/file.h"

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

// The position of one tensor after the header.
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

// A byte of a bool must be 0 or 1.
absl::Status CheckBools(const std::string& name, const Tensor& tensor) {
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
  if (std::any_of(bytes, bytes + tensor.nbytes(),
                  [](uint8_t byte) { return byte > 1; })) {
    return Broken(name, "a BOOL is neither 0 nor 1");
  }
  return absl::OkStatus();
}

constexpr size_t kPrefix = 8;

std::string PrefixOf(const std::string& header) {
  std::string prefix;
  for (size_t i = 0; i < kPrefix; ++i)
    prefix.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  return prefix;
}

absl::StatusOr<std::string> ReadHeader(const File& file, uint64_t file_bytes) {
  uint8_t prefix[kPrefix];
  if (file_bytes < kPrefix)
    return absl::DataLossError("too short for a safetensors file");
  RETURN_IF_ERROR(file.ReadAt(prefix, kPrefix, 0));
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | prefix[i];
  if (header_bytes > std::min(kMaxHeader, file_bytes - kPrefix)) {
    return absl::DataLossError(
        absl::StrCat("not a safetensors file: it claims a header of ",
                     header_bytes, " bytes"));
  }
  std::string text(header_bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(text.data(), text.size(), kPrefix));
  return text;
}

struct Header {
  std::vector<Entry> entries;
  SafeTensors content;  // without the tensors
};

absl::StatusOr<Header> ParseHeader(const std::string& text,
                                   uint64_t file_bytes) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    return absl::DataLossError("the header is not a JSON object");
  Header header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(ParseMetadata(value, header.content));
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, value));
    header.entries.push_back(std::move(entry));
  }
  const uint64_t start = kPrefix + text.size();
  if (file_bytes < start) return absl::DataLossError("the file ends early");
  RETURN_IF_ERROR(CheckCover(header.entries, file_bytes - start));
  for (Entry& entry : header.entries) {
    entry.begin += start;
    entry.end += start;
  }
  return header;
}

absl::StatusOr<Tensor> ReadEntry(const File& file, const Entry& entry) {
  const Tensor tensor = Tensor::Empty(entry.shape, {.dtype = entry.dtype});
  RETURN_IF_ERROR(file.ReadAt(tensor.raw_data(), tensor.nbytes(), entry.begin));
  if (entry.dtype == DType::kBool)
    RETURN_IF_ERROR(CheckBools(entry.name, tensor));
  return tensor;
}

absl::StatusOr<SafeTensors> ReadAll(const File& file) {
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  ASSIGN_OR_RETURN(const std::string text, ReadHeader(file, bytes));
  ASSIGN_OR_RETURN(Header header, ParseHeader(text, bytes));
  for (const Entry& entry : header.entries) {
    ASSIGN_OR_RETURN(header.content.tensors[entry.name],
                     ReadEntry(file, entry));
  }
  return header.content;
}

absl::StatusOr<NamedTensors> ReadSome(const File& file,
                                      const SafeTensorsIndex& index,
                                      const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  if (bytes < kPrefix + index.header.size())
    return absl::DataLossError("the file ends early");
  ASSIGN_OR_RETURN(const std::string text, ReadHeader(file, bytes));
  if (text != index.header)
    return absl::DataLossError("another file than was written");
  ASSIGN_OR_RETURN(const Header header, ParseHeader(text, bytes));
  std::set<std::string> wanted(names.begin(), names.end());
  NamedTensors tensors;
  for (const Entry& entry : header.entries) {
    if (wanted.erase(entry.name) == 0) continue;
    const auto sum = index.checksums.find(entry.name);
    ASSIGN_OR_RETURN(const Tensor tensor, ReadEntry(file, entry));
    if (sum == index.checksums.end() ||
        sum->second != cpu::Crc32(0, tensor.raw_data(), tensor.nbytes()))
      return Broken(entry.name, "its checksum is not that of what was written");
    tensors[entry.name] = tensor;
  }
  if (!wanted.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no tensor \"", *wanted.begin(), "\""));
  }
  return tensors;
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

// Small enough to be still in the cache when it is written.
constexpr size_t kWrittenAtOnce = 1 << 20;

absl::StatusOr<uint32_t> WriteSummed(FileWriter& file, const char* data,
                                     size_t bytes) {
  uint32_t sum = 0;
  for (size_t at = 0; at < bytes; at += kWrittenAtOnce) {
    const size_t size = std::min(kWrittenAtOnce, bytes - at);
    sum = cpu::Crc32(sum, data + at, size);
    RETURN_IF_ERROR(file.Write(data + at, size));
  }
  return sum;
}

absl::Status WriteAll(FileWriter& file, const std::vector<NamedTensor>& order,
                      SafeTensorsIndex& index) {
  const std::string prefix = PrefixOf(index.header);
  RETURN_IF_ERROR(file.Write(prefix.data(), prefix.size()));
  RETURN_IF_ERROR(file.Write(index.header.data(), index.header.size()));
  for (const auto& [name, tensor] : order) {
    const Tensor dense = tensor.To(Device::Cpu()).Contiguous();
    ASSIGN_OR_RETURN(
        index.checksums[name],
        WriteSummed(file, static_cast<const char*>(dense.raw_data()),
                    dense.nbytes()));
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

absl::StatusOr<SafeTensorsIndex> Write(const std::string& path,
                                       const SafeTensors& content) {
  RETURN_IF_ERROR(CheckContent(content));
  const std::vector<NamedTensor> order = FileOrder(content);
  SafeTensorsIndex index;
  try {
    index.header = HeaderText(content, order);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("a name or metadata is not UTF-8");
  }
  RETURN_IF_ERROR(ReplaceFile(
      path, [&](FileWriter& file) { return WriteAll(file, order, index); }));
  return index;
}

// Calls `use` with the open file; errors name the file.
template <typename T, typename Use>
absl::StatusOr<T> WithFile(const std::string& path, const Use& use) {
  auto result = CatchErrors([&]() -> absl::StatusOr<T> {
    ASSIGN_OR_RETURN(const File file, File::Open(path));
    return use(file);
  });
  if (!result.ok()) return Annotate(result.status(), path);
  return result;
}

}  // namespace

absl::StatusOr<SafeTensors> ReadSafeTensors(const std::string& path) {
  return WithFile<SafeTensors>(path, ReadAll);
}

absl::StatusOr<NamedTensors> ReadSafeTensors(
    const std::string& path, const SafeTensorsIndex& index,
    const std::vector<std::string>& names) {
  return WithFile<NamedTensors>(
      path, [&](const File& file) { return ReadSome(file, index, names); });
}

absl::StatusOr<SafeTensorsIndex> WriteSafeTensors(const std::string& path,
                                                  const SafeTensors& content) {
  auto index = Write(path, content);
  if (!index.ok()) return Annotate(index.status(), path);
  return index;
}

}  // namespace baton
