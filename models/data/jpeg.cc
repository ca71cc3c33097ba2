// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/jpeg.h"

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// libjpeg's headers use FILE without including <cstdio>, so they come after it.
#include <jpeglib.h>
//
#include <jerror.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::data {
namespace {

constexpr int64_t kMaxPixels = 200'000'000;
// A small file can ask for any number of scans, each of which decodes the whole
// image.
constexpr int kMaxScans = 256;

// libjpeg reports by callbacks, and error_exit must not return.
struct Errors {
  jpeg_error_mgr base;  // first: libjpeg holds a pointer to it
  jmp_buf back;
  bool cut_off = false;
  char text[JMSG_LENGTH_MAX] = "";
};

Errors& ErrorsOf(j_common_ptr info) {
  return *reinterpret_cast<Errors*>(info->err);
}

void OnError(j_common_ptr info) {
  Errors& errors = ErrorsOf(info);
  (*info->err->format_message)(info, errors.text);
  longjmp(errors.back, 1);
}

void OnMessage(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF)
    ErrorsOf(info).cut_off = true;
}

void OnOutput(j_common_ptr) {}  // nothing goes to stderr

void OnProgress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMaxScans) return;
  std::snprintf(ErrorsOf(info).text, JMSG_LENGTH_MAX,
                "the JPEG data has more than %d scans", kMaxScans);
  longjmp(ErrorsOf(info).back, 1);
}

void Install(Errors& errors, jpeg_error_mgr** slot) {
  *slot = jpeg_std_error(&errors.base);
  errors.base.error_exit = OnError;
  errors.base.emit_message = OnMessage;
  errors.base.output_message = OnOutput;
}

// No step that may jump holds an object with a destructor, because longjmp
// skips destructors.
class Decoder {
 public:
  Decoder() { Install(errors_, &info_.err); }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool ReadHeader(const std::string& bytes) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = OnProgress;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()),
                 bytes.size());
    jpeg_read_header(&info_, TRUE);
    const bool four = info_.jpeg_color_space == JCS_CMYK ||
                      info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }

  // `row` has room for four bytes a pixel, `pixels` for three.
  bool ReadPixels(uint8_t* row, uint8_t* pixels) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      const bool direct = info_.out_color_space == JCS_RGB;
      uint8_t* target =
          pixels + static_cast<size_t>(info_.output_scanline) * width() * 3;
      JSAMPROW rows[1] = {direct ? target : row};
      jpeg_read_scanlines(&info_, rows, 1);
      if (!direct) FromCmyk(row, target);
      if (errors_.cut_off) return false;
    }
    jpeg_finish_decompress(&info_);
    return !errors_.cut_off;
  }

  int64_t width() const { return info_.output_width; }
  int64_t height() const { return info_.output_height; }
  std::string problem() const {
    return errors_.cut_off ? "the JPEG data breaks off" : errors_.text;
  }

 private:
  // Adobe's files store 255 - ink; other files store the ink.
  void FromCmyk(const uint8_t* row, uint8_t* target) const {
    const int flip = info_.saw_Adobe_marker ? 0 : 255;
    for (int64_t x = 0; x < width(); ++x) {
      const int light = row[4 * x + 3] ^ flip;
      for (int c = 0; c < 3; ++c) {
        const int product = (row[4 * x + c] ^ flip) * light;
        target[3 * x + c] = static_cast<uint8_t>((product + 127) / 255);
      }
    }
  }

  Errors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

class Encoder {
 public:
  Encoder() { Install(errors_, &info_.err); }
  ~Encoder() {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  bool Write(const uint8_t* pixels, int64_t height, int64_t width, int channels,
             int quality) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &buffer_, &size_);
    info_.image_width = static_cast<JDIMENSION>(width);
    info_.image_height = static_cast<JDIMENSION>(height);
    info_.input_components = channels;
    info_.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    while (info_.next_scanline < info_.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(
          pixels + static_cast<size_t>(info_.next_scanline) * width * channels);
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

  std::string bytes() const {
    return std::string(reinterpret_cast<const char*>(buffer_), size_);
  }
  std::string problem() const { return errors_.text; }

 private:
  Errors errors_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;
  unsigned long size_ = 0;  // NOLINT(google-runtime-int): libjpeg's type
};

}  // namespace

absl::StatusOr<Tensor> DecodeJpeg(const std::string& bytes,
                                  const std::string& name) {
  Decoder decoder;
  if (!decoder.ReadHeader(bytes))
    return absl::DataLossError(absl::StrCat(name, ": ", decoder.problem()));
  const int64_t height = decoder.height();
  const int64_t width = decoder.width();
  if (height * width > kMaxPixels)
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": ", width, "x", height, " is too large"));
  return CatchErrors([&]() -> absl::StatusOr<Tensor> {
    Tensor pixels = Tensor::Empty({height, width, 3}, {.dtype = DType::kU8});
    std::vector<uint8_t> row(static_cast<size_t>(width) * 4);
    if (!decoder.ReadPixels(row.data(), pixels.data<uint8_t>()))
      return absl::DataLossError(absl::StrCat(name, ": ", decoder.problem()));
    return pixels.Permute({2, 0, 1});
  });
}

absl::StatusOr<std::string> EncodeJpeg(const Tensor& image, int quality) {
  if (image.rank() != 3 || (image.dim(0) != 3 && image.dim(0) != 1) ||
      image.dtype() != DType::kU8 || quality < 1 || quality > 100) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[encode_jpeg] expected u8 [3 or 1, H, W] and a quality of 1 to 100, "
        "got ",
        Name(image.dtype()), image.shape().ToString(), " and ", quality));
  }
  const Tensor pixels = image.Permute({1, 2, 0}).Contiguous();  // [H, W, C]
  Encoder encoder;
  if (!encoder.Write(pixels.data<uint8_t>(), pixels.dim(0), pixels.dim(1),
                     static_cast<int>(pixels.dim(2)), quality)) {
    return absl::InternalError(
        absl::StrCat("[encode_jpeg] ", encoder.problem()));
  }
  return encoder.bytes();
}

}  // namespace baton::data
