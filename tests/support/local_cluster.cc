// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/local_cluster.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/transports/grpc.h"

namespace baton::testing {
namespace {

class InProcessMaker final : public TransportMaker {
 public:
  std::unique_ptr<rpc::Transport> Make(const rpc::Registry&) override {
    return network_.NewTransport();
  }

 private:
  rpc::InProcessNetwork network_;
};

class GrpcMaker final : public TransportMaker {
 public:
  GrpcMaker(bool shared_memory, Device device)
      : shared_memory_(shared_memory), device_(device) {}
  std::unique_ptr<rpc::Transport> Make(const rpc::Registry& registry) override {
    rpc::GrpcOptions options;
    options.registry_digest = absl::StrCat(registry.Digest());
    options.inline_delivery = true;
    // A busy machine must not make a worker look lost. Killed workers are
    // noticed by their closed connections.
    options.lease = std::chrono::seconds(30);
    options.reconnect_timeout = std::chrono::milliseconds(1500);
    options.shared_memory = shared_memory_;
    options.device = device_;
    auto transport = rpc::MakeGrpcTransport(options);
    EXPECT_TRUE(transport.ok()) << transport.status();
    return *std::move(transport);
  }

 private:
  const bool shared_memory_;
  const Device device_;
};

}  // namespace

void PrintTo(TransportKind kind, std::ostream* out) {
  switch (kind) {
    case TransportKind::kInProcess:
      *out << "InProcess";
      return;
    case TransportKind::kGrpc:
      *out << "Grpc";
      return;
    case TransportKind::kGrpcStreams:
      *out << "GrpcStreams";
      return;
  }
}

std::string TransportName(const ::testing::TestParamInfo<TransportKind>& info) {
  return ::testing::PrintToString(info.param);
}

std::function<std::unique_ptr<TransportMaker>()> MakerOf(TransportKind kind,
                                                         Device device) {
  return [kind, device]() -> std::unique_ptr<TransportMaker> {
    if (kind == TransportKind::kInProcess) {
      return std::make_unique<InProcessMaker>();
    }
    return std::make_unique<GrpcMaker>(kind == TransportKind::kGrpc, device);
  };
}

LocalCluster::LocalCluster(ClusterOptions options)
    : options_(std::move(options)),
      maker_(options_.transports ? options_.transports()
                                 : std::make_unique<InProcessMaker>()) {
  for (const std::string& name : options_.names) infos_[name] = Describe(name);
  for (const std::string& name : options_.names) StartAgent(name);
}

LocalCluster::~LocalCluster() = default;

rpc::WorkerInfo LocalCluster::Describe(const std::string& name) {
  rpc::Registry registry;
  if (options_.fill) options_.fill(registry);
  auto transport = maker_->Make(registry);
  if (options_.faults != nullptr) {
    transport = rpc::WithFaults(std::move(transport), options_.faults);
  }
  rpc::WorkerInfo info;
  info.name = name;
  for (size_t i = 0; i < options_.names.size(); ++i) {
    if (options_.names[i] == name) info.rank = static_cast<rpc::Rank>(i);
  }
  info.incarnation = next_incarnation_++;
  info.address = transport->address();
  const auto compute = options_.compute.find(name);
  if (compute != options_.compute.end()) info.compute = compute->second;
  transports_[name] = std::move(transport);
  return info;
}

void LocalCluster::StartAgent(const std::string& name) {
  rpc::Registry registry;
  if (options_.fill) options_.fill(registry);
  rpc::AgentOptions agent;
  agent.self = infos_[name];
  for (const auto& [peer, info] : infos_) agent.peers.push_back(info);
  agent.worker_threads = options_.worker_threads;
  agent.lease = options_.lease;
  agent.resend_after = options_.resend_after;
  agent.on_start = options_.on_start;
  auto started = rpc::Agent::Start(std::move(agent), std::move(registry),
                                   std::move(transports_[name]));
  transports_.erase(name);
  if (!started.ok()) {
    ADD_FAILURE() << started.status();
    std::abort();
  }
  agents_[name] = *std::move(started);
}

void LocalCluster::Kill(const std::string& name) { agents_.erase(name); }

void LocalCluster::Restart(const std::string& name) {
  Kill(name);
  infos_[name] = Describe(name);
  for (auto& [other, agent] : agents_) agent->AddPeer(infos_[name]);
  StartAgent(name);
}

void LocalCluster::ExpectIdle() {
  for (auto& [name, agent] : agents_) {
    EXPECT_TRUE(agent->AwaitIdle(std::chrono::seconds(5)))
        << agent->GetDebugInfo().ToString();
  }
}

void LocalCluster::Shutdown() {
  std::vector<std::thread> threads;
  for (auto& [name, agent] : agents_) {
    threads.emplace_back([agent = agent.get()] {
      EXPECT_TRUE(agent->Shutdown({.timeout = std::chrono::seconds(5)}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace baton::testing
