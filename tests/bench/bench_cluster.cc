// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What a call costs while a cluster of processes of one machine grows:
//   bench_cluster [--workers=2,8,64] [--rounds=3] [--connect=all]
// This process is w0, which calls; all others only serve. `all`: every pair of
// workers has a connection; `caller`: only w0 with each. Prints a JSON line for
// each size: medians over the rounds, in which the sizes take turns, of calls
// with a tensor of 64 B to one worker while the others are idle ("one") and to
// each in turn ("all"); and what a worker holds, and uses while nothing
// happens.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/rendezvous.h"
#include "tests/bench/timing.h"
#include "tests/support/child_process.h"
#include "tests/support/process_usage.h"
#include "tests/support/program_path.h"

ABSL_FLAG(std::vector<std::string>, workers,
          (std::vector<std::string>{"2", "8", "64"}), "sizes of clusters");
ABSL_FLAG(int, rounds, 3, "of all sizes");
ABSL_FLAG(std::string, connect, "all", "who is connected: all, caller");
ABSL_FLAG(double, idle_seconds, 5, "for which nothing happens, each round");

namespace baton::bench {
namespace {

using testing::ProcessUsage;

constexpr int kCalls = 2000;
constexpr int kInFlight = 256;
constexpr int kBursts = 40;
// Of each figure, in turn: a cluster takes longer to start than they do, and
// one of them alone tells what else the machine did then.
constexpr int kTurns = 6;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "bench_cluster: " << status << "\n";
  std::exit(1);
}

// What every worker serves.
Tensor Nop(const Tensor&) { return Tensor::Zeros({1}); }
Future<void> Connect(rpc::CallContext& call) {
  std::vector<Future<Tensor>> answers;
  for (const rpc::WorkerInfo& worker : call.agent().workers()) {
    if (worker.name == call.agent().self().name) continue;
    answers.push_back(
        call.agent().Async<&Nop>(worker.name, call, Tensor::Zeros({16})));
  }
  return WaitAll(answers).Then([](const std::vector<Tensor>&) {});
}

std::unique_ptr<rpc::Agent> Join(const std::string& name,
                                 const std::string& rendezvous, int workers) {
  rpc::Registry registry;
  registry.AddFunction<&Nop>();
  registry.AddFunction<&Connect>();
  rpc::ClusterOptions options;
  options.name = name;
  options.rendezvous = rendezvous;
  options.world_size = workers;
  auto agent = rpc::JoinCluster(std::move(options), std::move(registry));
  Check(agent.status());
  return *std::move(agent);
}

// A cluster of so many processes, this one among them.
class Cluster {
 public:
  explicit Cluster(int workers) {
    auto server = rpc::RendezvousServer::Make("127.0.0.1:0");
    Check(server.status());
    rendezvous_ = *std::move(server);
    const std::string self = testing::ProgramPath("bench_cluster");
    for (int i = 1; i < workers; ++i) {
      names_.push_back(absl::StrCat("w", i));
      children_.push_back(
          std::make_unique<ChildProcess>(std::vector<std::string>{
              self, "peer", names_.back(), rendezvous_->address(),
              absl::StrCat(workers)}));
    }
    agent_ = Join("w0", rendezvous_->address(), workers);
  }

  // All leave as workers do, so that nobody is missed.
  ~Cluster() {
    agent_.reset();
    for (const auto& child : children_) child->CloseInput();
    for (const auto& child : children_) child->Wait();
  }

  void ConnectCaller() {
    for (const std::string& name : names_) Call(name);
  }
  void ConnectAll() {
    for (const std::string& name : names_) {
      Check(agent_->Async<&Connect>(name).Await());
    }
    ConnectCaller();
  }

  void Call(const std::string& name) {
    Check(agent_->Async<&Nop>(name, small_).Await().status());
  }
  void CallOne() { Call(names_.front()); }
  void CallNext() { Call(names_[next_++ % names_.size()]); }
  void Burst(size_t callees) {
    std::vector<Future<Tensor>> futures;
    for (int i = 0; i < kInFlight; ++i) {
      futures.push_back(agent_->Async<&Nop>(names_[next_++ % callees], small_));
    }
    Check(WaitAll(futures).Await().status());
  }
  size_t callees() const { return names_.size(); }

  ProcessUsage UsageHere() const { return UsageOf(getpid()); }
  std::vector<ProcessUsage> Usages() const {
    std::vector<ProcessUsage> usages;
    for (const auto& child : children_) usages.push_back(UsageOf(child->pid()));
    return usages;
  }

 private:
  static ProcessUsage UsageOf(pid_t pid) {
    const auto usage = testing::UsageOf(pid);
    Check(usage.status());
    return *usage;
  }

  std::unique_ptr<rpc::RendezvousServer> rendezvous_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  std::unique_ptr<rpc::Agent> agent_;
  const Tensor small_ = Tensor::Zeros({16});
  size_t next_ = 0;
};

// What rounds measured, by name, in the order of their first appearance.
class Figures {
 public:
  void Add(const std::string& name, double value) {
    if (values_.count(name) == 0) order_.push_back(name);
    values_[name].push_back(value);
  }
  void Print(int workers, const std::string& connect) const {
    std::printf("{\"what\": \"cluster\", \"workers\": %d, \"connect\": \"%s\"",
                workers, connect.c_str());
    for (const std::string& name : order_) {
      std::printf(", \"%s\": %.2f", name.c_str(), Median(values_.at(name)));
    }
    std::printf("}\n");
    std::fflush(stdout);
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> values_;
};

void MeasureCallsOnce(Cluster& cluster, Figures& figures) {
  const auto calls = [&](const char* whom, const std::function<void()>& call) {
    const auto times = TimesOf(kCalls, kCalls / 10, call);
    figures.Add(absl::StrCat(whom, "_p50_us"), Median(times));
    figures.Add(absl::StrCat(whom, "_p99_us"), Quantile(times, 0.99));
  };
  const auto burst = [&](const char* whom, size_t callees) {
    const double micros =
        TimeOf(kBursts, [&] { cluster.Burst(callees); }) / kInFlight;
    figures.Add(absl::StrCat(whom, "_calls_per_s"), 1e6 / micros);
  };
  calls("one", [&] { cluster.CallOne(); });
  burst("one", 1);
  calls("all", [&] { cluster.CallNext(); });
  burst("all", cluster.callees());
}

void MeasureCalls(Cluster& cluster, Figures& figures) {
  for (int turn = 0; turn < kTurns; ++turn) MeasureCallsOnce(cluster, figures);
}

// The mean and the most of a figure over all workers but the caller.
void AddHeld(const char* name, const std::vector<ProcessUsage>& usages,
             const std::function<double(const ProcessUsage&)>& of,
             Figures& figures) {
  double sum = 0, most = 0;
  for (const ProcessUsage& usage : usages) {
    sum += of(usage);
    most = std::max(most, of(usage));
  }
  figures.Add(absl::StrCat(name, "_mean"),
              sum / static_cast<double>(usages.size()));
  figures.Add(absl::StrCat(name, "_most"), most);
}

void MeasureRest(Cluster& cluster, Figures& figures) {
  const double seconds = absl::GetFlag(FLAGS_idle_seconds);
  const ProcessUsage here = cluster.UsageHere();
  std::vector<ProcessUsage> before = cluster.Usages();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::vector<ProcessUsage> usages = cluster.Usages();
  const auto percent = [&](const ProcessUsage& from, const ProcessUsage& to) {
    return 100 * (to.cpu_seconds - from.cpu_seconds) / seconds;
  };
  figures.Add("caller_idle_cpu_percent", percent(here, cluster.UsageHere()));
  for (size_t i = 0; i < usages.size(); ++i) {
    usages[i].cpu_seconds = percent(before[i], usages[i]);
  }
  AddHeld("idle_cpu_percent", usages, &ProcessUsage::cpu_seconds, figures);
  AddHeld("descriptors", usages, &ProcessUsage::descriptors, figures);
  AddHeld(
      "resident_kb", usages,
      [](const ProcessUsage& usage) {
        return static_cast<double>(usage.resident_kb);
      },
      figures);
  AddHeld("threads", usages, &ProcessUsage::threads, figures);
}

void Measure(int workers, bool all, Figures& figures) {
  Cluster cluster(workers);
  const auto begin = Clock::now();
  if (all) {
    cluster.ConnectAll();
  } else {
    cluster.ConnectCaller();
  }
  figures.Add("connecting_ms", Microseconds(Clock::now() - begin) / 1000);
  MeasureCalls(cluster, figures);
  MeasureRest(cluster, figures);
}

int Run() {
  std::map<int, Figures> figures;
  const std::string connect = absl::GetFlag(FLAGS_connect);
  for (const std::string& size : absl::GetFlag(FLAGS_workers)) {
    int workers = 0;
    if (!absl::SimpleAtoi(size, &workers) || workers < 2) return 2;
    figures[workers];
  }
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (auto& [workers, of] : figures) Measure(workers, connect == "all", of);
  }
  for (const auto& [workers, of] : figures) of.Print(workers, connect);
  return 0;
}

int Serve(const char* name, const char* rendezvous, int workers) {
  const auto agent = Join(name, rendezvous, workers);
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 5 && std::strcmp(argv[1], "peer") == 0) {
    return baton::bench::Serve(argv[2], argv[3], std::atoi(argv[4]));
  }
  absl::SetProgramUsageMessage("what a call costs while a cluster grows");
  absl::ParseCommandLine(argc, argv);
  return baton::bench::Run();
}
