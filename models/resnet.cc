// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/resnet.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autograd/functions/pool.h"
#include "autograd/functions/shape.h"
#include "core/status.h"
#include "models/nn/sequential.h"
#include "models/residual_block.h"
#include "models/units.h"

namespace baton::models {
namespace {

struct Architecture {
  int depth;
  bool bottleneck;
  std::array<int, 4> blocks;  // of layer1 .. layer4
};

constexpr Architecture kArchitectures[] = {{18, false, {2, 2, 2, 2}},
                                           {34, false, {3, 4, 6, 3}},
                                           {50, true, {3, 4, 6, 3}},
                                           {101, true, {3, 4, 23, 3}},
                                           {152, true, {3, 8, 36, 3}}};

const Architecture* Find(int depth) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.depth == depth) return &architecture;
  }
  return nullptr;
}

absl::Status Check(const ResNetOptions& o) {
  const Architecture* architecture = Find(o.depth);
  if (architecture == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        "ResNet: depth must be 18, 34, 50, 101 or 152, got ", o.depth));
  if (o.num_classes < 1 || o.in_channels < 1 || o.width < 1 || o.groups < 1 ||
      o.width_per_group < 1) {
    return absl::InvalidArgumentError(
        "ResNet: classes, channels, widths and groups must be positive");
  }
  if (!architecture->bottleneck && (o.groups != 1 || o.width_per_group != 64))
    return absl::InvalidArgumentError(
        "ResNet: groups and width_per_group need depth 50, 101 or 152");
  if (o.width * o.width_per_group / 64 < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("ResNet: width ", o.width, " with width_per_group ",
                     o.width_per_group, " leaves no channels"));
  return absl::OkStatus();
}

std::string UnitName(int layer, int block) {
  return absl::StrCat("layer", layer, ".", block);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResNetUnits(
    const ResNetOptions& options) {
  RETURN_IF_ERROR(Check(options));
  std::vector<std::string> units = {"stem"};
  const auto& blocks = Find(options.depth)->blocks;
  for (int layer = 1; layer <= 4; ++layer) {
    for (int block = 0; block < blocks[static_cast<size_t>(layer - 1)]; ++block)
      units.push_back(UnitName(layer, block));
  }
  units.push_back("head");
  return units;
}

absl::StatusOr<std::unique_ptr<ResNet>> ResNet::Make(
    const ResNetOptions& options) {
  return MakeStage(options, {}, 0);
}

absl::StatusOr<std::vector<std::string>> ResNet::StageUnits(
    const ResNetOptions& options, const std::vector<std::string>& cuts,
    int index) {
  ASSIGN_OR_RETURN(const std::vector<std::string> units, ResNetUnits(options));
  return UnitsOfStage("ResNet", units, cuts, index);
}

absl::StatusOr<std::unique_ptr<ResNet>> ResNet::MakeStage(
    const ResNetOptions& options, const std::vector<std::string>& cuts,
    int index) {
  ASSIGN_OR_RETURN(std::vector<std::string> own,
                   StageUnits(options, cuts, index));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<ResNet>> {
    return std::unique_ptr<ResNet>(new ResNet(options, std::move(own)));
  });
}

absl::StatusOr<std::vector<std::unique_ptr<ResNet>>> ResNet::MakeStages(
    const ResNetOptions& options, const std::vector<std::string>& cuts) {
  std::vector<std::unique_ptr<ResNet>> stages;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<ResNet> stage,
                     MakeStage(options, cuts, static_cast<int>(i)));
    stages.push_back(std::move(stage));
  }
  return stages;
}

ResNet::ResNet(const ResNetOptions& options, std::vector<std::string> units)
    : options_(options), units_(std::move(units)) {
  for (const std::string& unit : units_) {
    Generator generator(UnitSeed(options_.seed, unit));
    if (unit == "stem") {
      AddStem(generator);
    } else if (unit == "head") {
      AddHead(generator);
    } else {
      AddBlock(unit, generator);
    }
  }
  // With another format, convolutions would convert the weights in every pass.
  ToFormat(options_.format);
}

void ResNet::AddStem(Generator& generator) {
  nn::Conv2dOptions conv = {.kernel = {7, 7},
                            .stride = {2, 2},
                            .padding = {3, 3},
                            .bias = false,
                            .init = nn::ConvInit::kKaimingFanOut};
  if (options_.cifar_stem) {
    conv.kernel = {3, 3};
    conv.stride = {1, 1};
    conv.padding = {1, 1};
  }
  conv1_ = &MakeModule<nn::Conv2d>("conv1", options_.in_channels,
                                   options_.width, conv, generator);
  bn1_ = &MakeModule<nn::BatchNorm2d>("bn1", options_.width);
}

void ResNet::AddBlock(const std::string& unit, Generator& generator) {
  const size_t dot = unit.find('.');
  const std::string layer_name = unit.substr(0, dot);
  const std::string block_name = unit.substr(dot + 1);
  const int layer = layer_name.back() - '1';  // from 0
  const bool first = block_name == "0";
  const bool bottleneck = Find(options_.depth)->bottleneck;
  const int64_t expansion =
      bottleneck ? Bottleneck::kExpansion : BasicBlock::kExpansion;
  const int64_t planes = options_.width << layer;
  ResidualBlockOptions block = {
      .in = planes * expansion,
      .planes = planes,
      .stride = first && layer > 0 ? 2 : 1,
      .groups = options_.groups,
      .width_per_group = options_.width_per_group,
      .zero_init_residual = options_.zero_init_residual};
  if (first) block.in = layer == 0 ? planes : planes / 2 * expansion;
  if (children().empty() || children().back().name != layer_name)
    MakeModule<nn::Sequential>(layer_name);
  auto& sequence = static_cast<nn::Sequential&>(*children().back().value);
  if (bottleneck) {
    blocks_.push_back(&sequence.Add(
        block_name, std::make_shared<Bottleneck>(block, generator)));
  } else {
    blocks_.push_back(&sequence.Add(
        block_name, std::make_shared<BasicBlock>(block, generator)));
  }
}

void ResNet::AddHead(Generator& generator) {
  const int64_t expansion = Find(options_.depth)->bottleneck
                                ? Bottleneck::kExpansion
                                : BasicBlock::kExpansion;
  fc_ = &MakeModule<nn::Linear>("fc", options_.width * 8 * expansion,
                                options_.num_classes, generator);
}

Variable ResNet::Forward(const Variable& x) {
  Variable y = autograd::Contiguous(x, options_.format);
  if (conv1_ != nullptr) {
    y = bn1_->ForwardRelu((*conv1_)(y));
    if (!options_.cifar_stem) {
      y = autograd::MaxPool2d(
          y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    }
  }
  for (nn::Module* block : blocks_) y = (*block)(y);
  if (fc_ != nullptr)
    y = (*fc_)(autograd::Flatten(autograd::AdaptiveAvgPool2d(y, 1, 1), 1));
  return y;
}

}  // namespace baton::models
