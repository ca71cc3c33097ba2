// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"
#include "models/data/sample_random.h"

// Steps that turn a stored image into the input of a model, for one image [C,
// H, W] at a time. All but ToFloat and Normalize keep u8. Results have
// interleaved pixels in memory, as an image of a channels-last batch has. A
// step throws Error if it cannot take an image. Steps are pure functions of
// image and random numbers, and thread-safe.
namespace baton::data {

using Transform =
    std::function<Tensor(const Tensor& image, SampleRandom& random)>;

// Resizes bilinearly, and widens the filter when shrinking, as Pillow does.
Tensor ResizeImage(const Tensor& image, int64_t height, int64_t width);

Transform Resize(int64_t height, int64_t width);
// Resizes the shorter side to `size` and keeps the aspect ratio.
Transform ResizeShorter(int64_t size);
// Throws Error if the image is smaller than the crop.
Transform CenterCrop(int64_t height, int64_t width);
// Crops at a random place, after adding `padding` black pixels on each side.
Transform RandomCrop(int64_t height, int64_t width, int64_t padding = 0);

struct RandomResizedCropOptions {
  std::array<double, 2> area = {0.08, 1.0};  // share of the image
  std::array<double, 2> aspect = {3.0 / 4, 4.0 / 3};
};
// Crops a random part with a random area and aspect ratio, and resizes it.
Transform RandomResizedCrop(int64_t height, int64_t width,
                            const RandomResizedCropOptions& options = {});

Transform RandomHorizontalFlip(double probability = 0.5);

// Converts u8 0 .. 255 to f32 0 .. 1; leaves f32 as it is.
Transform ToFloat();
// Applies ToFloat, then (x - mean[c]) / stddev[c].
Transform Normalize(std::vector<float> mean, std::vector<float> stddev);

// Applies the steps one after the other.
Transform Compose(std::vector<Transform> steps);

// The usual steps for training and testing, with CIFAR-10's or ImageNet's crop
// and flip; those for testing are deterministic.
Transform CifarTraining();
Transform CifarTesting();
Transform ImageNetTraining(int64_t size = 224);
Transform ImageNetTesting(int64_t size = 224);

}  // namespace baton::data
