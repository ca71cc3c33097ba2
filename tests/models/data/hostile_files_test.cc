// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Files made to harm who reads them.

#include <cstdio>
#include <cstdlib>

// After <cstdio>, whose FILE it uses without including it.
#include <jpeglib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/archive.h"
#include "models/data/jpeg.h"
#include "tests/models/data/made_files.h"
#include "tests/support/test_files.h"

namespace baton::data {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// libarchive would start lrzip, grzip or lzop for the magic of their files.
TEST(HostileFiles, NoFileStartsAProgram) {
  const testing::TempFolder folder;
  for (const std::string& magic :
       {std::string("LRZI\0\6", 6), std::string("GRZipII\0\2\4:)", 12),
        std::string("\x89LZO\0\r\n\x1a\n", 9)}) {
    const std::string path =
        folder.Write("a.tar", magic + std::string(200, '\0'));
    const auto files = ReadArchive(path, [](const auto&) { return true; });
    EXPECT_FALSE(files.ok());
    EXPECT_THAT(std::string(files.status().message()),
                Not(HasSubstr("program")));
    EXPECT_EQ(ReadUnpacked(path)->size(), magic.size() + 200);
  }
}

TEST(HostileFiles, WhatUnpacksWithoutEndIsCutOff) {
  const testing::TempFolder folder;
  const std::string path =
      folder.Write("zeros.gz", MakeGzip(std::string(size_t{300} << 20, '\0')));
  const absl::Status status = ReadUnpacked(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(path + ": unpacks to more than 1000 times its size"));
}

std::string ProgressiveJpeg() {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = info.image_height = 16;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  unsigned char row[16] = {1, 50, 100, 150, 200, 250, 7, 9};
  JSAMPROW rows[] = {row};
  while (info.next_scanline < 16) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  std::free(buffer);
  return bytes;
}

// A few bytes a scan, and each is a pass over all pixels.
TEST(HostileFiles, AJpegOfEndlessScansIsCutOff) {
  std::string bytes = ProgressiveJpeg();
  ASSERT_TRUE(DecodeJpeg(bytes, "fine").ok());
  const size_t last = bytes.rfind("\xff\xda");
  const size_t end = bytes.rfind("\xff\xd9");
  ASSERT_LT(last, end);
  const std::string scan = bytes.substr(last, end - last);
  std::string many = bytes.substr(0, end);
  for (int i = 0; i < 1000; ++i) many += scan;
  many += "\xff\xd9";
  const absl::Status status = DecodeJpeg(many, "many").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("many: the JPEG data has more than 256 scans"));
}

}  // namespace
}  // namespace baton::data
