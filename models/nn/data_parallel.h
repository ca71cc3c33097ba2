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
  // The module's own first; each takes an equal part of the rows. What is
  // listed twice has two parts.
  std::vector<Device> devices{};
  std::optional<Device> output_device{};  // unset: the first
};

// One process that uses several devices for a module: its values are cut along
// their first axis, a device computes each part with a copy of the module, and
// what they give is put together on the output device. Gradients flow back to
// the module itself, as the sums over the devices: so it is trained as if there
// were no others.
//
//   auto net = std::make_shared<Net>(...);
//   net->To(Device::Cuda(0));
//   nn::DataParallel parallel(net, [] { return std::make_shared<Net>(...); },
//                             {.devices = {Device::Cuda(0), Device::Cuda(1)}});
//   nn::CrossEntropy(parallel(images), labels).Backward();
//
// Copies are made anew for each forward; the first device uses the module. So
// batch norms go by the rows of each device, and running statistics are those
// of the first; hooks run there alone, and what a forward draws differs between
// the devices. Values may be on any device. Fewer rows than devices leave some
// out, and none at all go to the first; a result without axes comes as one of
// each device, [parts]. Its part is named "module". For more speed, and several
// machines, give each device a process: dist::DataParallel.
// Thread-compatible.
class DataParallel final : public Module {
 public:
  using Make = std::function<std::shared_ptr<Module>()>;
  // `make` gives a module of the same parts, for each further device; what is
  // in it does not count. Throws Error where there are no devices, or the
  // module is not on the first.
  DataParallel(std::shared_ptr<Module> module, const Make& make,
               DataParallelOptions options);

  Variable Forward(const Variable& x) override;
  // Throws Error led by the device where it went wrong.
  std::vector<Variable> ForwardAll(
      const std::vector<Variable>& values) override;

 private:
  using Values = std::vector<Variable>;
  std::vector<Values> Scatter(const Values& values) const;
  // What each part gives.
  std::vector<Values> Apply(const std::vector<Values>& parts);
  Values Gather(const std::vector<Values>& results) const;
  Module& ModuleOf(size_t part) const;

  const DataParallelOptions options_;
  Module& module_;
  std::vector<std::shared_ptr<Module>> copies_;  // of all devices but the first
  std::unique_ptr<ThreadPool> threads_;          // likewise; null: none
};

}  // namespace baton::nn
