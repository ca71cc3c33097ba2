// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"
#include "models/data/sample_random.h"

// Steps from an image as stored to the image a model reads, for one image
// [C, H, W] at a time; all but ToFloat and Normalize keep u8. Results lie in
// memory as rows of pixels, which is a row of a channels-last batch. A step
// throws Error for an image it cannot take. Steps are pure functions of image
// and random numbers, and thread-safe.
namespace baton::data {

using Transform =
    std::function<Tensor(const Tensor& image, SampleRandom& random)>;

// Bilinear, with the filter widened when shrinking, as Pillow does.
Tensor ResizeImage(const Tensor& image, int64_t height, int64_t width);

Transform Resize(int64_t height, int64_t width);
// The shorter side becomes `size`; the shape of the image is kept.
Transform ResizeShorter(int64_t size);
// Crops of an image that is smaller than the crop are an error.
Transform CenterCrop(int64_t height, int64_t width);
// From the image with `padding` black pixels around it.
Transform RandomCrop(int64_t height, int64_t width, int64_t padding = 0);

struct RandomResizedCropOptions {
  std::array<double, 2> area = {0.08, 1.0};  // share of the image
  std::array<double, 2> aspect = {3.0 / 4, 4.0 / 3};
};
// A random part of random shape, resized.
Transform RandomResizedCrop(int64_t height, int64_t width,
                            const RandomResizedCropOptions& options = {});

Transform RandomHorizontalFlip(double probability = 0.5);

// u8 0 .. 255 to f32 0 .. 1; f32 stays.
Transform ToFloat();
// ToFloat, then (x - mean[c]) / stddev[c].
Transform Normalize(std::vector<float> mean, std::vector<float> stddev);

// One after the other.
Transform Compose(std::vector<Transform> steps);

// What training and testing usually apply: CIFAR-10's crop and flip, and
// ImageNet's; the testing forms are deterministic.
Transform CifarTraining();
Transform CifarTesting();
Transform ImageNetTraining(int64_t size = 224);
Transform ImageNetTesting(int64_t size = 224);

}  // namespace baton::data
