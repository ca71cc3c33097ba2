// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "rpc/agent.h"
#include "rpc/registry.h"
#include "rpc/transports/in_process.h"
#include "tests/support/fault.h"

namespace baton::testing {

// Makes the transports of a cluster: an in-process network, or sockets.
class TransportMaker {
 public:
  virtual ~TransportMaker() = default;
  virtual std::unique_ptr<rpc::Transport> Make(
      const rpc::Registry& registry) = 0;
};

// The transports that tests run over: TEST_P with kTransports and
// TransportName. kGrpcStreams uses no shared memory.
enum class TransportKind { kInProcess, kGrpc, kGrpcStreams };
inline const auto kTransports =
    ::testing::Values(TransportKind::kInProcess, TransportKind::kGrpc,
                      TransportKind::kGrpcStreams);
void PrintTo(TransportKind kind, std::ostream* out);
std::string TransportName(const ::testing::TestParamInfo<TransportKind>& info);
// Tensors from other workers' GPUs arrive on `device`.
std::function<std::unique_ptr<TransportMaker>()> MakerOf(
    TransportKind kind, Device device = Device::Cpu());

struct ClusterOptions {
  std::vector<std::string> names{"alice", "bob"};
  std::function<void(rpc::Registry&)> fill;
  int worker_threads = 2;
  std::chrono::milliseconds lease{300};
  std::chrono::milliseconds resend_after{30};
  std::function<void(rpc::Agent&)> on_start{};
  std::function<std::unique_ptr<TransportMaker>()> transports{};  // in process
  std::shared_ptr<rpc::FaultPlan> faults{};
  // The devices and dtypes of the workers that it names.
  std::map<std::string, rpc::Compute> compute{};
};

// Agents of one process, each of which knows all others. A test ends with
//   cluster.ExpectIdle();
// to check that no call, object or handle is left anywhere. Confined to the
// test's thread.
class LocalCluster {
 public:
  explicit LocalCluster(ClusterOptions options);
  ~LocalCluster();

  rpc::Agent& operator[](const std::string& name) { return *agents_.at(name); }
  rpc::Agent& operator[](size_t i) { return *agents_.at(options_.names[i]); }
  size_t size() const { return options_.names.size(); }

  // Ends a worker as a crash would: others notice only its broken connections.
  void Kill(const std::string& name);
  // Starts a new incarnation of the worker and tells all others.
  void Restart(const std::string& name);

  // Waits until all calls, objects and handles are gone; a failure lists those
  // left.
  void ExpectIdle();
  // Shuts down all agents gracefully, at the same time.
  void Shutdown();

 private:
  rpc::WorkerInfo Describe(const std::string& name);
  void StartAgent(const std::string& name);

  const ClusterOptions options_;
  std::unique_ptr<TransportMaker> maker_;
  uint64_t next_incarnation_ = 1000;
  std::map<std::string, rpc::WorkerInfo> infos_;
  std::map<std::string, std::unique_ptr<rpc::Transport>> transports_;
  std::map<std::string, std::unique_ptr<rpc::Agent>> agents_;
};

}  // namespace baton::testing
