// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/executor.h"
#include "models/nn/module.h"

namespace baton::nn {

struct DataParallelOptions {
  // The first must be the module's own. Each device takes an equal part of the
  // rows; a device that is listed twice takes two parts.
  std::vector<Device> devices{};
  std::optional<Device> output_device{};  // unset: the first
};

// Uses several devices of one process for a module: its inputs are split along
// their first axis, each device computes one part with a copy of the module,
// and the results are concatenated on the output device. The gradients of all
// devices are summed into the module itself, so it is trained as if it ran
// alone.
//
//   auto net = std::make_shared<Net>(...);
//   net->To(Device::Cuda(0));
//   nn::DataParallel parallel(net, [] { return std::make_shared<Net>(...); },
//                             {.devices = {Device::Cuda(0), Device::Cuda(1)}});
//   nn::CrossEntropy(parallel(images), labels).Backward();
//
// The copies are refreshed for each forward; the first device uses the module
// itself. So batch norms use the rows of each device separately, and running
// statistics are those of the first device; hooks run only there, and random
// numbers differ between the devices. Inputs may be on any device. If there are
// fewer rows than devices, some devices are not used; without any rows only the
// first is. Results without axes are stacked, one from each part: [parts]. The
// child module is named "module". For more speed, and for several machines, use
// one process for each device: dist::DataParallel. Thread-compatible.
class DataParallel final : public Module {
 public:
  using Make = std::function<std::shared_ptr<Module>()>;
  // `make` returns a module of the same structure, for each further device; its
  // values do not matter. Throws Error if there are no devices or the module is
  // not on the first one.
  DataParallel(std::shared_ptr<Module> module, const Make& make,
               DataParallelOptions options);

  Variable Forward(const Variable& x) override;
  // Throws Error; its text begins with the device that failed.
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  using Values = std::vector<Variable>;
  std::vector<Values> Scatter(const Values& values) const;
  // Returns the results of each part.
  std::vector<Values> Apply(const std::vector<Values>& parts);
  Values Gather(const std::vector<Values>& results) const;
  Module& ModuleOf(size_t part) const;

  const DataParallelOptions options_;
  Module& module_;
  std::vector<std::shared_ptr<Module>> copies_;  // of all devices but the first
  std::unique_ptr<ThreadPool> threads_;          // for the same; null if none
};

}  // namespace baton::nn
