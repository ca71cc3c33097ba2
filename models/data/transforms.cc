// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace baton::data {
namespace {

void RequireImage(const char* op, const Tensor& image) {
  Require(image.rank() == 3 && image.numel() > 0, op,
          "expected an image [C, H, W], got ", image.shape().ToString());
}

void RequireBytes(const char* op, const Tensor& image) {
  RequireImage(op, image);
  Require(image.dtype() == DType::kU8, op, "expected u8, got ",
          Name(image.dtype()), ": put it before ToFloat and Normalize");
}

struct Box {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

Tensor Crop(const Tensor& image, const Box& box) {
  return image.Slice(1, box.top, box.top + box.height)
      .Slice(2, box.left, box.left + box.width);
}

void RequireRoom(const char* op, const Tensor& image, int64_t height,
                 int64_t width) {
  Require(image.dim(1) >= height && image.dim(2) >= width, op, "an image of ",
          image.dim(1), " x ", image.dim(2), " is smaller than the crop of ",
          height, " x ", width, ": resize it first");
}

Tensor Padded(const Tensor& image, int64_t padding) {
  const int64_t height = image.dim(1) + 2 * padding;
  const int64_t width = image.dim(2) + 2 * padding;
  Tensor padded =
      Tensor::Zeros({height, width, image.dim(0)}, {.dtype = image.dtype()})
          .Permute({2, 0, 1});
  Crop(padded, {padding, padding, image.dim(1), image.dim(2)}).CopyFrom(image);
  return padded;
}

// Returns a box of random area and aspect ratio. If ten such boxes do not fit,
// returns the largest centred box whose aspect ratio is allowed.
Box RandomBox(int64_t height, int64_t width,
              const RandomResizedCropOptions& options, SampleRandom& random) {
  const double low = std::log(options.aspect[0]);
  const double high = std::log(options.aspect[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(height * width) *
                        random.Uniform(options.area[0], options.area[1]);
    const double aspect = std::exp(random.Uniform(low, high));
    Box box;
    box.width = std::lround(std::sqrt(area * aspect));
    box.height = std::lround(std::sqrt(area / aspect));
    if (box.width < 1 || box.height < 1 || box.width > width ||
        box.height > height) {
      continue;
    }
    box.top = random.Below(height - box.height + 1);
    box.left = random.Below(width - box.width + 1);
    return box;
  }
  const double aspect =
      std::clamp(static_cast<double>(width) / static_cast<double>(height),
                 options.aspect[0], options.aspect[1]);
  Box box;
  box.width =
      std::min(width, std::lround(static_cast<double>(height) * aspect));
  box.height =
      std::min(height, std::lround(static_cast<double>(width) / aspect));
  box.width = std::max<int64_t>(box.width, 1);
  box.height = std::max<int64_t>(box.height, 1);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

Tensor FlippedHorizontally(const Tensor& image) {
  const Tensor source = image.Permute({1, 2, 0}).Contiguous();  // [H, W, C]
  const Tensor flipped = Tensor::EmptyLike(source);
  const size_t pixel =
      static_cast<size_t>(source.dim(2)) * SizeOf(image.dtype());
  const int64_t width = source.dim(1);
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(flipped.raw_data());
  for (int64_t y = 0; y < source.dim(0); ++y) {
    for (int64_t x = 0; x < width; ++x, to += pixel) {
      const int64_t mirrored = y * width + width - 1 - x;
      std::memcpy(to, from + static_cast<size_t>(mirrored) * pixel, pixel);
    }
  }
  return flipped.Permute({2, 0, 1});
}

// Returns x * scale[c] + shift[c] for u8 or f32 images.
template <typename T>
Tensor Scaled(const Tensor& image, const std::vector<float>& scale,
              const std::vector<float>& shift) {
  const Tensor source = image.Permute({1, 2, 0}).Contiguous();  // [H, W, C]
  const Tensor scaled = Tensor::Empty(source.shape());
  const auto channels = static_cast<size_t>(source.dim(2));
  const T* from = source.data<T>();
  float* to = scaled.data<float>();
  const auto count = static_cast<size_t>(source.numel());
  for (size_t i = 0; i < count; i += channels) {
    for (size_t c = 0; c < channels; ++c)
      to[i + c] = static_cast<float>(from[i + c]) * scale[c] + shift[c];
  }
  return scaled.Permute({2, 0, 1});
}

}  // namespace

Transform Resize(int64_t height, int64_t width) {
  return [=](const Tensor& image, SampleRandom&) {
    return ResizeImage(image, height, width);
  };
}

Transform ResizeShorter(int64_t size) {
  return [=](const Tensor& image, SampleRandom&) {
    RequireBytes("resize", image);
    const int64_t height = image.dim(1);
    const int64_t width = image.dim(2);
    return height <= width ? ResizeImage(image, size, size * width / height)
                           : ResizeImage(image, size * height / width, size);
  };
}

Transform CenterCrop(int64_t height, int64_t width) {
  return [=](const Tensor& image, SampleRandom&) {
    RequireImage("center_crop", image);
    RequireRoom("center_crop", image, height, width);
    const auto middle = [](int64_t room) {
      return std::lrint(static_cast<double>(room) / 2);  // half to even
    };
    return Crop(image, {middle(image.dim(1) - height),
                        middle(image.dim(2) - width), height, width});
  };
}

Transform RandomCrop(int64_t height, int64_t width, int64_t padding) {
  return [=](const Tensor& image, SampleRandom& random) {
    RequireImage("random_crop", image);
    const Tensor whole = padding > 0 ? Padded(image, padding) : image;
    RequireRoom("random_crop", whole, height, width);
    const int64_t top = random.Below(whole.dim(1) - height + 1);
    const int64_t left = random.Below(whole.dim(2) - width + 1);
    return Crop(whole, {top, left, height, width});
  };
}

Transform RandomResizedCrop(int64_t height, int64_t width,
                            const RandomResizedCropOptions& options) {
  return [=](const Tensor& image, SampleRandom& random) {
    RequireBytes("random_resized_crop", image);
    const Box box = RandomBox(image.dim(1), image.dim(2), options, random);
    return ResizeImage(Crop(image, box), height, width);
  };
}

Transform RandomHorizontalFlip(double probability) {
  return [=](const Tensor& image, SampleRandom& random) {
    RequireImage("horizontal_flip", image);
    return random.Uniform() < probability ? FlippedHorizontally(image) : image;
  };
}

Transform ToFloat() {
  return [](const Tensor& image, SampleRandom&) {
    RequireImage("to_float", image);
    if (image.dtype() == DType::kF32) return image;
    RequireBytes("to_float", image);
    const auto channels = static_cast<size_t>(image.dim(0));
    return Scaled<uint8_t>(image, std::vector<float>(channels, 1.0f / 255),
                           std::vector<float>(channels, 0));
  };
}

Transform Normalize(std::vector<float> mean, std::vector<float> stddev) {
  Require(mean.size() == stddev.size() && !mean.empty() &&
              std::all_of(stddev.begin(), stddev.end(),
                          [](float s) { return s > 0; }),
          "normalize",
          "expected a mean and a positive stddev for each channel");
  return [mean = std::move(mean), stddev = std::move(stddev)](
             const Tensor& image, SampleRandom&) {
    RequireImage("normalize", image);
    Require(image.dim(0) == static_cast<int64_t>(mean.size()), "normalize",
            "expected ", mean.size(), " channels, got an image ",
            image.shape().ToString());
    const bool bytes = image.dtype() != DType::kF32;
    if (bytes) RequireBytes("normalize", image);
    std::vector<float> scale;
    std::vector<float> shift;
    for (size_t c = 0; c < mean.size(); ++c) {
      scale.push_back(1 / (stddev[c] * (bytes ? 255.0f : 1.0f)));
      shift.push_back(-mean[c] / stddev[c]);
    }
    return bytes ? Scaled<uint8_t>(image, scale, shift)
                 : Scaled<float>(image, scale, shift);
  };
}

Transform Compose(std::vector<Transform> steps) {
  return [steps = std::move(steps)](const Tensor& image, SampleRandom& random) {
    Tensor result = image;
    for (const Transform& step : steps) result = step(result, random);
    return result;
  };
}

namespace {

// Uses the means and standard deviations of the training sets' pixels.
Transform CifarNormalize() {
  return Normalize({0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f});
}
Transform ImageNetNormalize() {
  return Normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
}

}  // namespace

Transform CifarTraining() {
  return Compose(
      {RandomCrop(32, 32, 4), RandomHorizontalFlip(), CifarNormalize()});
}

Transform CifarTesting() { return CifarNormalize(); }

Transform ImageNetTraining(int64_t size) {
  return Compose({RandomResizedCrop(size, size), RandomHorizontalFlip(),
                  ImageNetNormalize()});
}

Transform ImageNetTesting(int64_t size) {
  return Compose({ResizeShorter(size * 256 / 224), CenterCrop(size, size),
                  ImageNetNormalize()});
}

}  // namespace baton::data
