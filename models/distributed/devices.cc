// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/devices.h"

#include "core/gpu_count.h"

namespace baton::dist {
namespace {

std::vector<Device> DevicesHere(rpc::CallContext& call) {
  const Device own = call.compute().device;
  std::vector<Device> devices = {own};
  for (int gpu = 0; own.is_cuda() && gpu < GpuCount(); ++gpu) {
    if (gpu != own.index()) devices.push_back(Device::Cuda(gpu));
  }
  return devices;
}

}  // namespace

Future<std::vector<Device>> DevicesOf(rpc::Agent& agent,
                                      const rpc::Target& worker) {
  return agent.Async<&DevicesHere>(worker);
}

void RegisterDevices(rpc::Registry& registry) {
  registry.AddFunction<&DevicesHere>();
}

}  // namespace baton::dist
