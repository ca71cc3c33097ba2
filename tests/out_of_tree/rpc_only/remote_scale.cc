// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// A class of another project, made remote with an installed Baton.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "baton/core/tensor.h"
#include "baton/rpc/agent.h"
#include "baton/rpc/transports/in_process.h"
#include "core/status.h"

namespace {

using baton::Tensor;

class Scale {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  static absl::StatusOr<std::unique_ptr<Scale>> Make(float factor) {
    if (factor == 0) return absl::InvalidArgumentError("factor 0");
    return std::make_unique<Scale>(factor);
  }
  Tensor Apply(const Tensor& x) const {
    std::vector<float> values = x.ToVector<float>();
    for (float& value : values) value *= factor_;
    return Tensor::From(values, x.shape());
  }
  using Exports = baton::rpc::Methods<&Scale::Make, &Scale::Apply>;

 private:
  float factor_;
};

absl::StatusOr<std::unique_ptr<baton::rpc::Agent>> Start(
    const std::vector<baton::rpc::WorkerInfo>& all, size_t index,
    std::unique_ptr<baton::rpc::Transport> transport) {
  baton::rpc::AgentOptions options;
  options.self = all[index];
  options.peers = all;
  baton::rpc::Registry registry;
  registry.Add<Scale>();
  return baton::rpc::Agent::Start(std::move(options), std::move(registry),
                                  std::move(transport));
}

absl::Status Run() {
  baton::rpc::InProcessNetwork network;
  auto alice_transport = network.NewTransport();
  auto bob_transport = network.NewTransport();
  const std::vector<baton::rpc::WorkerInfo> all = {
      {"alice", baton::rpc::Rank{0}, 1, alice_transport->address()},
      {"bob", baton::rpc::Rank{1}, 2, bob_transport->address()}};
  BATON_ASSIGN_OR_RETURN(auto alice, Start(all, 0, std::move(alice_transport)));
  BATON_ASSIGN_OR_RETURN(auto bob, Start(all, 1, std::move(bob_transport)));
  {
    BATON_ASSIGN_OR_RETURN(
        const baton::RRef<Scale> scale,
        baton::rpc::Create<Scale>(*alice, "bob", 3.0f).Await());
    BATON_ASSIGN_OR_RETURN(
        const Tensor y,
        scale.Async<&Scale::Apply>(Tensor::From<float>({1, 2})).Await());
    if (y.ToVector<float>() != std::vector<float>{3, 6})
      return absl::InternalError("wrong result: " + y.ToString());
    if (baton::rpc::Create<Scale>(*alice, "bob", 0.0f).Await().ok())
      return absl::InternalError("a failed Make went unnoticed");
  }
  BATON_RETURN_IF_ERROR(alice->Shutdown());
  return bob->Shutdown();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::puts(status.ok() ? "out of tree: fine" : status.ToString().c_str());
  return status.ok() ? kWorked : kFailed;
}
