// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/ops/arithmetic.h"

namespace baton {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SafeTensorsFile : public ::testing::Test {
 protected:
  SafeTensorsFile() {
    std::string pattern = (fs::temp_directory_path() / "batonXXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~SafeTensorsFile() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const {
    return (directory_ / name).string();
  }

  // The status of reading a file with this header and data.
  absl::Status ReadBack(const std::string& header, const std::string& data) {
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<char>(header.size() >> (8 * i));
    }
    return ReadBytes(bytes + header + data);
  }

  absl::Status ReadBytes(const std::string& bytes) {
    std::ofstream(Path("raw"), std::ios::binary) << bytes;
    return ReadSafeTensors(Path("raw")).status();
  }

  fs::path directory_;
};

TEST_F(SafeTensorsFile, RoundTripsEveryDTypeAndLayout) {
  SafeTensors content;
  const Tensor x = Tensor::Arange(12, DType::kF64).Reshape({1, 3, 2, 2});
  for (int value = 0; value < 8; ++value) {
    const auto dtype = static_cast<DType>(value);
    content.tensors[Name(dtype)] = x.To(dtype);
  }
  content.tensors["nhwc"] = x.Contiguous(MemoryFormat::kChannelsLast);
  content.tensors["view"] = x.Transpose(1, 3);
  content.tensors["scalar"] = Tensor::Scalar(3);
  content.tensors["empty"] = Tensor::Zeros({0, 4});
  content.metadata["format"] = "pt";
  ASSERT_TRUE(WriteSafeTensors(Path("a"), content).ok());
  const auto read = ReadSafeTensors(Path("a"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, content.metadata);
  ASSERT_EQ(read->tensors.size(), content.tensors.size());
  for (const auto& [name, tensor] : content.tensors) {
    EXPECT_TRUE(ops::BitEqual(read->tensors.at(name), tensor)) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
}

TEST_F(SafeTensorsFile, AFailedWriteLeavesTheOldFile) {
  SafeTensors content;
  content.tensors["x"] = Tensor::Ones({2});
  ASSERT_TRUE(WriteSafeTensors(Path("a"), content).ok());
  content.tensors["__metadata__"] = Tensor::Ones({2});
  EXPECT_FALSE(WriteSafeTensors(Path("a"), content).ok());
  EXPECT_EQ(ReadSafeTensors(Path("a"))->tensors.size(), 1u);
  content.tensors = {{"\xff", Tensor::Ones({1})}};
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteSafeTensors(Path("a"), content).status()));
  content.tensors = {{"undefined", Tensor()}};
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteSafeTensors(Path("a"), content).status()));
  const absl::Status status = WriteSafeTensors(Path("no/a"), {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/a"));
  fs::create_directory(Path("folder"));
  EXPECT_FALSE(WriteSafeTensors(Path("folder"), {}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 2);
}

TEST_F(SafeTensorsFile, MissingFilesAndFoldersAreNamed) {
  const auto missing = ReadSafeTensors(Path("missing"));
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("missing"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(ReadSafeTensors(directory_.string()).status()));
}

TEST_F(SafeTensorsFile, BrokenFilesAreDataLoss) {
  const std::string entry = R"({"x":{"dtype":"F32","shape":[2],)";
  EXPECT_TRUE(
      ReadBack(entry + R"("data_offsets":[0,8]}})", std::string(8, 'a')).ok());
  const std::pair<std::string, std::string> broken[] = {
      {entry + R"("data_offsets":[0,8]}})", "short"},
      {entry + R"("data_offsets":[0,8]}})", std::string(9, 'a')},
      {entry + R"("data_offsets":[8,0]}})", std::string(8, 'a')},
      {entry + R"("data_offsets":[0,4]}})", std::string(4, 'a')},
      {entry + R"("data_offsets":[4,12]}})", std::string(12, 'a')},
      {entry + R"("data_offsets":[0,8,9]}})", std::string(8, 'a')},
      {entry + R"("data_offsets":[-8,0]}})", std::string(8, 'a')},
      {entry + R"("data_offsets":"x"}})", std::string(8, 'a')},
      {R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
       "aaaaaaaa"},
      {R"({"x":{"dtype":"F32","shape":[1.5],"data_offsets":[0,8]}})", ""},
      {R"({"x":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],)"
       R"("data_offsets":[0,0]}})",
       ""},
      {R"({"x":{"dtype":"F32","shape":[18446744073709551615],)"
       R"("data_offsets":[0,8]}})",
       "aaaaaaaa"},
      {R"({"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"},
      {R"({"x":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)"
       R"(1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
       "a"},
      {R"({"x":{"dtype":4}})", ""},
      {R"({"x":3})", ""},
      {R"({"__metadata__":{"a":1}})", ""},
      {R"({"__metadata__":1})", ""},
      {"[]", ""},
      {"{not json", ""},
      {"", ""}};
  for (const auto& [header, data] : broken) {
    const absl::Status status = ReadBack(header, data);
    EXPECT_TRUE(absl::IsDataLoss(status)) << header << " gave " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path("raw")));
  }
  EXPECT_TRUE(absl::IsDataLoss(ReadBytes("")));
  EXPECT_TRUE(absl::IsDataLoss(ReadBytes("1234567")));
  EXPECT_TRUE(absl::IsDataLoss(ReadBytes(std::string(16, '\xff'))));
}

// As other programs write them.
TEST_F(SafeTensorsFile, NamesSayWhichTensorIsWhichInAnyOrder) {
  const std::string u8 = R"({"dtype": "U8", "shape": [1], "data_offsets": )";
  for (const std::string& header :
       {R"({"a": )" + u8 + R"([0, 1]}, "b": )" + u8 + R"([1, 2]}})",
        R"({"b": )" + u8 + R"([1, 2]}, "a": )" + u8 + R"([0, 1]}})"}) {
    EXPECT_TRUE(ReadBack(header, "xy").ok());
    const auto read = ReadSafeTensors(Path("raw"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->tensors.at("a").Item(), 'x') << header;
    EXPECT_EQ(read->tensors.at("b").Item(), 'y') << header;
  }
  EXPECT_TRUE(
      ReadBack(R"({"a": )" + u8 + R"([1, 2]}, "b": )" + u8 + R"([0, 1]}})",
               "xy")
          .ok());
  EXPECT_EQ(ReadSafeTensors(Path("raw"))->tensors.at("a").Item(), 'y');
}

// More than is written at a time, and no whole blocks; also where the file
// system is memory.
TEST_F(SafeTensorsFile, LargeOnesRoundTrip) {
  SafeTensors content;
  content.tensors["a"] = Tensor::Arange(9'000'001, DType::kF32);
  content.tensors["b"] = Tensor::Full({5'000'003}, 7, {.dtype = DType::kU8});
  std::vector<std::string> paths = {Path("large")};
  if (fs::is_directory("/dev/shm"))
    paths.push_back("/dev/shm/" + directory_.filename().string());
  for (const std::string& path : paths) {
    const auto index = WriteSafeTensors(path, content);
    ASSERT_TRUE(index.ok()) << index.status();
    const auto read = ReadSafeTensors(path, *index, {"a", "b"});
    ASSERT_TRUE(read.ok()) << read.status();
    for (const auto& [name, tensor] : content.tensors)
      EXPECT_TRUE(ops::BitEqual(read->at(name), tensor)) << name;
    fs::remove(path);
  }
}

TEST_F(SafeTensorsFile, UnknownDTypesAreInvalid) {
  const absl::Status status = ReadBack(
      R"({"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "a");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("F8_E4M3"));
}

TEST_F(SafeTensorsFile, OverlapsAreDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(
      ReadBack(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
               "abc")));
}

}  // namespace
}  // namespace baton
