// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// One process of a cluster that rpc_chaos does harm to:
//   chaos_worker rendezvous
//   chaos_worker NAME RENDEZVOUS WORLD_SIZE
// The first writes its address. The second writes "joined", then does what
// stands on the lines of its input:
//   go SEED LIMIT_MS   begins a Load
//   end       ends it; writes "ended CALLS ERRORS SLOW [BEGIN END]... [ODD
//             ERROR]": how many calls were over the limit, and when each of
//             them began and ended, in microseconds of the steady clock
//   check     writes "idle", or "left" and what is (report_idle.h)
// Both end when their input does, with 0.

#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/rpc/chaos/load.h"
#include "tests/rpc/peer/report_idle.h"

namespace baton::testing {
namespace {

int ServeRendezvous() {
  auto server = rpc::RendezvousServer::Make("127.0.0.1:0");
  if (!server.ok()) return 1;
  std::cout << (*server)->address() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}

long Microseconds(Load::Clock::time_point time) {
  return time.time_since_epoch() / std::chrono::microseconds(1);
}

std::string ToString(const Load::Report& report) {
  std::string text = absl::StrCat("ended ", report.calls, " ", report.errors,
                                  " ", report.slow.size());
  for (const Load::Call& call : report.slow) {
    absl::StrAppend(&text, " ", Microseconds(call.begin), " ",
                    Microseconds(call.end));
  }
  return absl::StrCat(text, " ", report.odd);
}

void Serve(rpc::Agent& agent) {
  std::optional<Load> load;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string word;
    uint64_t seed = 0;
    long limit_ms = 0;
    words >> word >> seed >> limit_ms;
    if (word == "go") {
      load.emplace(agent, seed, std::chrono::milliseconds(limit_ms));
    } else if (line == "end" && load.has_value()) {
      load->End();
      std::cout << ToString(load->report()) << std::endl;
    } else if (line == "check") {
      Load::ClearShelf();
      ReportIdle(agent);
    }
  }
}

int Work(rpc::ClusterOptions options) {
  options.agent.worker_threads = 2;
  rpc::Registry registry;
  Load::FillRegistry(registry);
  auto agent = JoinCluster(std::move(options), std::move(registry));
  std::cout << (agent.ok() ? "joined" : agent.status().ToString()) << std::endl;
  if (!agent.ok()) return 1;
  Serve(**agent);
  return 0;
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  if (argc == 2) return baton::testing::ServeRendezvous();
  if (argc != 4) return 2;
  baton::rpc::ClusterOptions options;
  options.name = argv[1];
  options.rendezvous = argv[2];
  options.world_size = std::atoi(argv[3]);
  return baton::testing::Work(std::move(options));
}
