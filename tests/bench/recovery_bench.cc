// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What it costs that a pipeline of three workers and a spare can be recovered.
//
//   recovery_bench --what=snapshots
//
// times steps of the pipeline that copies its workers' states again and again
// and of one that does not, in turn in the same processes. `step_s` is the
// median of each, `cost` that of the ratios of neighbours. On GPUs:
//
//   recovery_bench --what=snapshots --devices=cuda:0,cuda:1
//
//   recovery_bench --what=faults --minutes=10 >faults.json
//
// trains with a fault every --period_s seconds at a worker that has a stage:
// --faults in turn (tests/bench/faults.h). Where one of them is a partition,
// each process has a host of its own, and talks to the others by TCP. Prints a
// JSON line for each step, with the rows trained so far and the loss, for each
// fault and for each recovery. With --period_s=1e6 no fault happens to the same
// training. draw_faults.py computes how much of the throughput was kept, and
// compares the losses of two such runs.

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/random.h"
#include "core/status.h"
#include "models/distributed/recovery.h"
#include "models/distributed/resnet_stage.h"
#include "models/distributed/stock.h"
#include "optim/distributed/optimizer.h"
#include "optim/sgd.h"
#include "rpc/cluster.h"
#include "rpc/spares.h"
#include "tests/bench/bench_main.h"
#include "tests/bench/faults.h"
#include "tests/bench/timing.h"
#include "tests/support/host_network.h"
#include "tests/support/process_cluster.h"
#include "tests/support/program_path.h"

ABSL_FLAG(std::string, what, "snapshots", "snapshots or faults");
ABSL_FLAG(int, depth, 50, "of the ResNet");
ABSL_FLAG(int64_t, width, 64, "its channels after the stem");
ABSL_FLAG(int64_t, image, 64, "height and width of the images");
ABSL_FLAG(int64_t, batch, 48, "images of a step");
ABSL_FLAG(int64_t, split, 8, "images of a micro-batch");
ABSL_FLAG(double, momentum, 0.9, "of SGD; 0: it keeps no state");
ABSL_FLAG(int, rounds, 12, "snapshots: of steps of each kind");
ABSL_FLAG(int, steps, 3, "snapshots: timed steps of a round, after one more");
ABSL_FLAG(double, minutes, 10, "faults: of training with faults");
ABSL_FLAG(double, period_s, 30, "faults: between two of them");
ABSL_FLAG(std::vector<std::string>, faults,
          (baton::bench::FaultNames{"kill", "stop1", "stop5", "partition5"}),
          "faults: which, in turn: kill; stopN, partitionN, deafN: for N "
          "seconds");
ABSL_FLAG(std::vector<std::string>, devices, {"cpu"},
          "of the workers, in turn");
ABSL_FLAG(absl::Duration, lease, absl::Seconds(2),
          "after which a silent worker counts as lost");

namespace baton {
namespace {

using bench::Clock;

constexpr int kWorkers = 3;
const std::vector<std::string> kCuts = {"layer2", "layer3.1"};

double SecondsSince(Clock::time_point begin) {
  return bench::Microseconds(Clock::now() - begin) / 1e6;
}

std::string WorkerName(int number) { return absl::StrCat("worker", number); }

// This process, which trains, workers and a spare; each has a host of its own
// where there is a network.
class Cluster {
 public:
  static absl::StatusOr<std::unique_ptr<Cluster>> Make(
      std::unique_ptr<testing::HostNetwork> network) {
    std::unique_ptr<Cluster> cluster(new Cluster(std::move(network)));
    for (int i = 1; i <= kWorkers; ++i)
      cluster->processes_.Start(WorkerName(i), kWorkers + 1);
    rpc::ClusterOptions options;
    options.name = "trainer";
    options.rendezvous = cluster->processes_.address();
    options.world_size = kWorkers + 1;
    options.listen = cluster->ListenOf(0);
    options.security = cluster->security_;
    options.agent.on_start = dist::AttachStock;
    options.agent.lease =
        absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_lease));
    rpc::Registry registry;
    dist::RegisterStock(registry);
    ASSIGN_OR_RETURN(cluster->agent_,
                     rpc::JoinCluster(std::move(options), std::move(registry)));
    if (cluster->processes_.StartAgain(rpc::SpareName(1), *cluster->agent_))
      return cluster;
    return absl::UnavailableError("the spare does not come");
  }
  ~Cluster() {
    if (agent_ == nullptr) return;
    agent_->Shutdown({.mode = rpc::ShutdownOptions::Mode::kNow}).IgnoreError();
  }
  rpc::Agent& agent() { return *agent_; }
  testing::ProcessCluster& processes() { return processes_; }
  // Null where all are on one host.
  testing::HostNetwork* network() { return network_.get(); }
  static int HostOf(const std::string& worker) {
    for (int i = 1; i <= kWorkers; ++i)
      if (worker == WorkerName(i)) return i;
    return kWorkers + 1;
  }

 private:
  explicit Cluster(std::unique_ptr<testing::HostNetwork> network)
      : network_(std::move(network)) {}
  std::string ListenOf(int host) const {
    if (network_ == nullptr) return "127.0.0.1:0";
    return absl::StrCat(testing::HostNetwork::AddressOf(host), ":0");
  }
  std::vector<std::string> Worker(const std::string& name,
                                  const std::string& rendezvous,
                                  int world_size) const {
    const int host = HostOf(name);
    const std::vector<std::string> devices = absl::GetFlag(FLAGS_devices);
    const std::vector<std::string> command = {
        testing::ProgramPath("baton-worker"),
        absl::StrCat("--name=", name),
        absl::StrCat("--rendezvous=", rendezvous),
        absl::StrCat("--listen=", ListenOf(host)),
        absl::StrCat("--insecure=", security_.insecure),
        absl::StrCat("--device=",
                     devices[static_cast<size_t>(host - 1) % devices.size()]),
        absl::StrCat("--lease=",
                     absl::FormatDuration(absl::GetFlag(FLAGS_lease))),
        world_size == 0 ? "--extra"
                        : absl::StrCat("--world_size=", world_size)};
    return network_ == nullptr ? command : network_->On(host, command);
  }

  const std::unique_ptr<testing::HostNetwork> network_;
  const rpc::Security security_{.insecure = network_ != nullptr};
  testing::ProcessCluster processes_{
      [this](const std::string& name, const std::string& rendezvous,
             int world_size) { return Worker(name, rendezvous, world_size); },
      ListenOf(0), security_};
  std::unique_ptr<rpc::Agent> agent_;
};

// A ResNet in three stages.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Make(
      rpc::Agent& agent, bool recovers, const dist::RecoveryOptions& recovery) {
    const models::ResNetOptions model = {.depth = absl::GetFlag(FLAGS_depth),
                                         .width = absl::GetFlag(FLAGS_width)};
    std::unique_ptr<Training> made(new Training());
    std::vector<dist::RecoveredModule> recovered;
    std::vector<dist::StageModule> stages;
    std::vector<dist::ParameterSource> sources;
    for (int i = 0; i < kWorkers; ++i) {
      const auto make = [&agent, model, i](const rpc::Target& worker) {
        return dist::Module<dist::ResNetStage>::Create(agent, worker, model,
                                                       kCuts, i);
      };
      ASSIGN_OR_RETURN(const auto module, make(WorkerName(i + 1)).Await());
      made->modules_.push_back(module);
      recovered.emplace_back(module, make);
      stages.emplace_back(module);
      sources.push_back(module.ref());
    }
    made->sgd_ = std::make_unique<dist::Optimizer<optim::Sgd>>(
        agent,
        optim::SgdOptions{.lr = 0.01,
                          .momentum = absl::GetFlag(FLAGS_momentum)},
        sources);
    dist::PipelineOptions options;
    options.split_size = absl::GetFlag(FLAGS_split);
    if (recovers) {
      ASSIGN_OR_RETURN(made->recovered_,
                       dist::RecoverablePipeline::Make(agent, options, recovery,
                                                       recovered, *made->sgd_));
    } else {
      ASSIGN_OR_RETURN(made->plain_,
                       dist::Pipeline::Make(agent, options, stages));
    }
    made->MakeBatches();
    return made;
  }

  // Trains on the next of its batches; returns the loss.
  absl::StatusOr<double> Step() {
    const Batch& batch = batches_[steps_++ % batches_.size()];
    ASSIGN_OR_RETURN(const auto result,
                     recovered_ != nullptr
                         ? recovered_->Step(batch.images, batch.labels)
                         : plain_->Step(*sgd_, batch.images, batch.labels));
    return result.loss;
  }
  // Who has a stage now.
  std::string Owner(size_t stage) const {
    return modules_[stage % modules_.size()].owner().name;
  }

 private:
  struct Batch {
    Tensor images, labels;
  };

  void MakeBatches() {
    Generator generator(1);
    const int64_t batch = absl::GetFlag(FLAGS_batch);
    const int64_t image = absl::GetFlag(FLAGS_image);
    for (Batch& each : batches_) {
      each.images = RandNormal({batch, 3, image, image}, generator)
                        .Contiguous(MemoryFormat::kChannelsLast);
      each.labels = RandInt(0, 1000, {batch}, generator);
    }
  }

  std::vector<dist::Module<dist::ResNetStage>> modules_;
  std::unique_ptr<dist::Optimizer<optim::Sgd>> sgd_;
  std::unique_ptr<dist::RecoverablePipeline> recovered_;
  std::unique_ptr<dist::Pipeline> plain_;
  std::array<Batch, 16> batches_;
  size_t steps_ = 0;
};

// Seconds of each of some steps; what the one before left is over by then.
absl::StatusOr<std::vector<double>> TimeSteps(Training& training) {
  RETURN_IF_ERROR(training.Step().status());
  std::vector<double> seconds;
  for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) {
    const auto begin = Clock::now();
    RETURN_IF_ERROR(training.Step().status());
    seconds.push_back(SecondsSince(begin));
  }
  return seconds;
}

absl::Status MeasureSnapshots(Cluster& cluster) {
  ASSIGN_OR_RETURN(const auto plain,
                   Training::Make(cluster.agent(), false, {}));
  ASSIGN_OR_RETURN(const auto recovered,
                   Training::Make(cluster.agent(), true, {}));
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(TimeSteps(*plain).status());
    RETURN_IF_ERROR(TimeSteps(*recovered).status());
  }
  std::vector<double> without, with, ratios;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    const bool first = round % 2 == 0;
    ASSIGN_OR_RETURN(const auto a, TimeSteps(first ? *plain : *recovered));
    ASSIGN_OR_RETURN(const auto b, TimeSteps(first ? *recovered : *plain));
    const auto& [p, r] = first ? std::pair(a, b) : std::pair(b, a);
    without.insert(without.end(), p.begin(), p.end());
    with.insert(with.end(), r.begin(), r.end());
    ratios.push_back(bench::Median(r) / bench::Median(p));
  }
  std::printf(
      "{\"what\": \"snapshots\", \"depth\": %d, \"image\": %d, \"batch\": %d, "
      "\"steps\": %zu, \"step_s\": {\"without\": %.4f, \"with\": %.4f}, "
      "\"least_s\": {\"without\": %.4f, \"with\": %.4f}, \"cost\": %.4f}\n",
      absl::GetFlag(FLAGS_depth), static_cast<int>(absl::GetFlag(FLAGS_image)),
      static_cast<int>(absl::GetFlag(FLAGS_batch)), with.size(),
      bench::Median(without), bench::Median(with),
      bench::Quantile(without, 0.1), bench::Quantile(with, 0.1),
      bench::Median(ratios) - 1);
  return absl::OkStatus();
}

// Trains with faults, and prints what happens.
class FaultyTraining {
 public:
  FaultyTraining(Cluster& cluster, std::vector<bench::Fault> faults)
      : cluster_(cluster), faults_(std::move(faults)) {}
  ~FaultyTraining() {
    if (fault_.joinable()) fault_.join();
  }

  absl::Status Train() {
    const auto tell = [this](const dist::Recovery& recovery) {
      std::printf("{\"at\": %.3f, \"recovery\": \"%s\"}\n",
                  SecondsSince(begin_), recovery.ToString().c_str());
    };
    ASSIGN_OR_RETURN(training_, Training::Make(cluster_.agent(), true,
                                               {.on_recovery = tell}));
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(training_->Step().status());
    begin_ = Clock::now();
    double next_fault = absl::GetFlag(FLAGS_period_s) / 2;
    while (SecondsSince(begin_) < 60 * absl::GetFlag(FLAGS_minutes)) {
      if (SecondsSince(begin_) >= next_fault) {
        Break();
        next_fault += absl::GetFlag(FLAGS_period_s);
      }
      ASSIGN_OR_RETURN(const double loss, training_->Step());
      rows_ += absl::GetFlag(FLAGS_batch);
      std::printf("{\"at\": %.3f, \"rows\": %d, \"loss\": %.17g}\n",
                  SecondsSince(begin_), static_cast<int>(rows_), loss);
    }
    return absl::OkStatus();
  }

 private:
  // Something, at one of the workers, while the training goes on.
  void Break() {
    if (fault_.joinable()) fault_.join();
    const bench::Fault fault = faults_[number_ % faults_.size()];
    const std::string worker = training_->Owner(number_ / faults_.size());
    ++number_;
    std::printf("{\"at\": %.3f, \"fault\": \"%s\", \"worker\": \"%s\"}\n",
                SecondsSince(begin_), fault.kind.c_str(), worker.c_str());
    fault_ = std::thread([this, fault, worker] {
      fault.happens({cluster_.processes(), worker, cluster_.network(),
                     Cluster::HostOf(worker)});
    });
  }

  Cluster& cluster_;
  const std::vector<bench::Fault> faults_;
  std::unique_ptr<Training> training_;
  Clock::time_point begin_;
  size_t number_ = 0;
  int64_t rows_ = 0;
  std::thread fault_;
};

absl::Status MeasureFaults() {
  ASSIGN_OR_RETURN(auto faults, bench::FaultsOf(absl::GetFlag(FLAGS_faults)));
  std::unique_ptr<testing::HostNetwork> network;
  if (bench::NeedNetwork(faults)) {
    ASSIGN_OR_RETURN(network, testing::HostNetwork::Make(kWorkers + 1));
  }
  ASSIGN_OR_RETURN(const auto cluster, Cluster::Make(std::move(network)));
  return FaultyTraining(*cluster, std::move(faults)).Train();
}

absl::Status Main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string what = absl::GetFlag(FLAGS_what);
  if (what == "faults") return MeasureFaults();
  if (what != "snapshots")
    return absl::InvalidArgumentError("--what: snapshots or faults");
  ASSIGN_OR_RETURN(const auto cluster, Cluster::Make(nullptr));
  return MeasureSnapshots(*cluster);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  return baton::bench::Main(argc, argv, baton::Main);
}
