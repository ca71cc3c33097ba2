// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "models/nn/batch_norm.h"
#include "models/nn/conv2d.h"
#include "models/nn/linear.h"
#include "models/nn/module.h"

namespace baton::models {

struct ResNetOptions {
  int depth = 50;  // 18, 34, 50, 101 or 152
  int64_t num_classes = 1000;
  int64_t in_channels = 3;
  int64_t width = 64;  // channels after the stem; less for small tests
  int64_t groups = 1;  // of 3x3 convolutions; for depth 50 and up
  int64_t width_per_group = 64;  // likewise
  bool cifar_stem = false;       // for 32x32: 3x3 by stride 1 and no max pool
  bool zero_init_residual = false;
  uint64_t seed = 0;  // of the initial weights
  // The memory order of its activations and weights.
  MemoryFormat format = MemoryFormat::kChannelsLast;
  // All options, since a worker that makes a part needs them.
  static constexpr auto Fields() {
    return std::tuple{
        &ResNetOptions::depth,       &ResNetOptions::num_classes,
        &ResNetOptions::in_channels, &ResNetOptions::width,
        &ResNetOptions::groups,      &ResNetOptions::width_per_group,
        &ResNetOptions::cifar_stem,  &ResNetOptions::zero_init_residual,
        &ResNetOptions::seed,        &ResNetOptions::format};
  }
};

// Returns the units that a model can be cut into, in order: "stem", "layer1.0",
// "layer1.1", ..., "layer4.2", "head". Returns InvalidArgument for invalid
// options.
absl::StatusOr<std::vector<std::string>> ResNetUnits(
    const ResNetOptions& options);

// A residual network, or a run of consecutive units of one: images [N, C, H, W]
// to logits [N, classes]. Parameters have torchvision's names and initial
// distributions. A unit's weights depend on the seed and the unit alone, so the
// stages of a cut model together equal the whole one.
//
// A cut names the unit, or the whole layer, that a stage ends after, so
// MakeStage(options, {"layer2"}, 1) has everything after layer2.
// Thread-compatible.
class ResNet : public nn::Module {
 public:
  static absl::StatusOr<std::unique_ptr<ResNet>> Make(
      const ResNetOptions& options);
  // Makes stage `index` of the cuts.size() + 1 stages. Returns InvalidArgument
  // for cuts that are unknown, out of order or leave a stage empty.
  static absl::StatusOr<std::unique_ptr<ResNet>> MakeStage(
      const ResNetOptions& options, const std::vector<std::string>& cuts,
      int index);
  static absl::StatusOr<std::vector<std::unique_ptr<ResNet>>> MakeStages(
      const ResNetOptions& options, const std::vector<std::string>& cuts);

  // Returns the units of that stage; errors are those of MakeStage.
  static absl::StatusOr<std::vector<std::string>> StageUnits(
      const ResNetOptions& options, const std::vector<std::string>& cuts,
      int index);

  Variable Forward(const Variable& x) override;

  const ResNetOptions& options() const { return options_; }
  const std::vector<std::string>& units() const { return units_; }

 protected:
  ResNet(const ResNetOptions& options, std::vector<std::string> units);

 private:
  void AddStem(Generator& generator);
  void AddBlock(const std::string& unit, Generator& generator);
  void AddHead(Generator& generator);

  const ResNetOptions options_;
  const std::vector<std::string> units_;
  // Null, or empty, if the part has none.
  nn::Conv2d* conv1_ = nullptr;
  nn::BatchNorm2d* bn1_ = nullptr;
  std::vector<nn::Module*> blocks_;
  nn::Linear* fc_ = nullptr;
};

}  // namespace baton::models
