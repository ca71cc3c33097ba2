// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Starts a cluster on this machine, or this machine's part of a larger one, and
// runs a trainer on it:
//   baton-run --workers=2 --cores_per_worker=1 -- resnet50_pipeline --batch=60

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/gpu_count.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/rendezvous.h"
#include "rpc/spares.h"
#include "tools/address_flag.h"
#include "tools/command_line.h"
#include "tools/compute.h"
#include "tools/launch/nodes.h"
#include "tools/launch/process.h"
#include "tools/launch/run_all.h"
#include "tools/node_flags.h"
#include "tools/security_flags.h"

ABSL_FLAG(int, workers, 2, "worker processes to start on each machine");
ABSL_FLAG(int, cores_per_worker, 0,
          "pin each worker to so many cores of its own; 0: not pinned, with "
          "compute threads for an even share of the cores, or as "
          "OMP_NUM_THREADS says");
ABSL_FLAG(std::string, device, "",
          "where workers compute: cpu, cuda:1 or several, divided by commas, "
          "which they take in turn; cuda: the GPUs of this machine in turn");
ABSL_FLAG(
    std::string, dtype, "",
    "of the workers' weights: fp32, tf32, bf16 or fp16; see baton-worker");
ABSL_FLAG(bool, deterministic, false,
          "equal calls give equal bits on the workers' GPUs, too");
ABSL_FLAG(std::string, worker_program, "",
          "the daemon; default baton-worker beside this program");
ABSL_FLAG(std::string, worker_flags, "",
          "more flags for each worker, divided by spaces");
ABSL_FLAG(
    int, restarts, 0,
    "start a worker that dies again under its name, up to so many times "
    "within --restart_window; the trainer must know how to go on with it");
ABSL_FLAG(
    int, trainer_restarts, 0,
    "start the trainer again when it is killed or fails, up to so many times "
    "within --restart_window, beside the workers as they are; it must find "
    "what they have kept (dist::RecoveryOptions::journal) or resume from a "
    "checkpoint (--resume=latest)");
ABSL_FLAG(absl::Duration, restart_window, absl::Minutes(5),
          "a worker that dies more often than --restarts within this time is "
          "not started again; the same for --trainer_restarts");
ABSL_FLAG(absl::Duration, restart_pause, absl::Milliseconds(100),
          "how long to wait before a worker is started again that died within "
          "10s of its last start; doubles each time, up to 30s; others are "
          "started at once");
ABSL_FLAG(int, spares, 0,
          "more workers, spare1, spare2, ..., which the trainer does not wait "
          "for and gives something to do when it needs them");
ABSL_FLAG(int, min_workers, -1,
          "go on when workers die while so many are left, for trainers that do "
          "without them; -1: all");
ABSL_FLAG(bool, may_lose_workers, false, "the same as --min_workers=0");
ABSL_FLAG(int, max_workers, 0,
          "the most workers that there may be at a time, with those that join "
          "from elsewhere (baton-worker --extra): one more is refused, until "
          "one has gone; 0: any number");
ABSL_FLAG(std::string, rendezvous_listen, "",
          "host:port where the workers meet; port 0 for any free one; default "
          "--rendezvous, else 127.0.0.1:0");
ABSL_FLAG(absl::Duration, grace, absl::Seconds(20),
          "how long a process may take to end before it is killed");

namespace baton::tools {
namespace {

// Per machine; a greater number is taken for a mistake.
constexpr int kMostWorkers = 1024;
// The lease of nodes, which do nothing but stay connected. A broken connection
// may be restored within this time.
constexpr std::chrono::seconds kNodeLease{3};

// How many times libgomp's threads check for another loop before they sleep,
// which takes about 0.1 ms. Its default of about 14 ms keeps other threads from
// the cores, while the loops of a trainer or a server are milliseconds apart.
constexpr char kSpins[] = "2000";

constexpr char kUsage[] =
    "usage: baton-run [FLAGS] -- TRAINER [ITS FLAGS]\n"
    "       baton-run --nodes=N --node=K --rendezvous=HOST:PORT [FLAGS]\n"
    "Starts workers worker1, worker2, ... on this machine and the trainer,\n"
    "which finds them by its environment; ends all when the trainer ends or a\n"
    "worker dies, but for --restarts, --min_workers and --may_lose_workers;\n"
    "gives the trainer's exit code. With --nodes it does so on several "
    "machines,\neach of which has a baton-run that starts the workers there.";

std::string FolderOfThisProgram() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return path.parent_path().string();
}

// Finds the program beside this one or, if it is not there, on PATH.
absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const std::string own = FolderOfThisProgram();
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders =
      absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty());
  folders.insert(folders.begin(), own);
  for (const std::string& folder : folders) {
    const std::string file = absl::StrCat(folder, "/", name);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  std::vector<std::string> beside;
  for (const auto& file : std::filesystem::directory_iterator(own))
    beside.push_back(file.path().filename());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no program '", name, "' beside baton-run or on ",
                   "PATH", DoYouMean(name, beside)));
}

int AllWorkers(const NodeFlags& nodes) {
  return nodes.nodes * absl::GetFlag(FLAGS_workers);
}

absl::Status CheckFlags(const std::vector<std::string>& trainer,
                        const NodeFlags& nodes) {
  if (trainer.empty() && nodes.node == 0)
    return absl::InvalidArgumentError("no trainer: baton-run -- TRAINER ...");
  const int workers = absl::GetFlag(FLAGS_workers);
  if (workers < 1 || workers > kMostWorkers)
    return absl::InvalidArgumentError(
        absl::StrCat("--workers must be 1 to ", kMostWorkers));
  RETURN_IF_ERROR(AtLeast(0, FLAGS_cores_per_worker, FLAGS_restarts,
                          FLAGS_trainer_restarts));
  const int spares = absl::GetFlag(FLAGS_spares);
  if (spares < 0 || spares > kMostWorkers)
    return absl::InvalidArgumentError(
        absl::StrCat("--spares must be 0 to ", kMostWorkers));
  const int least = absl::GetFlag(FLAGS_min_workers);
  if (least < -1 || least > AllWorkers(nodes))
    return absl::InvalidArgumentError(
        "--min_workers must be 0 to --workers, of all nodes, or -1");
  const int most = absl::GetFlag(FLAGS_max_workers);
  if (most != 0 && most < AllWorkers(nodes) + nodes.nodes * spares)
    return absl::InvalidArgumentError(
        "--max_workers must be at least --workers and --spares of all nodes "
        "together, or 0");
  if (rpc::internal::IsEtcd(nodes.rendezvous) &&
      (most != 0 || !absl::GetFlag(FLAGS_rendezvous_listen).empty()))
    return absl::InvalidArgumentError(
        "--max_workers and --rendezvous_listen are for a rendezvous in "
        "baton-run; give --max_members and --listen to baton-rendezvous, which "
        "serves where --rendezvous is etcd://...");
  if (least > 0 && absl::GetFlag(FLAGS_may_lose_workers))
    return absl::InvalidArgumentError(
        "--min_workers and --may_lose_workers exclude each other");
  return absl::OkStatus();
}

// Returns the limit of the rendezvous, where the trainer joins the workers.
int MaxMembers() {
  const int most = absl::GetFlag(FLAGS_max_workers);
  return most == 0 ? 0 : most + 1;
}

// Returns, for each worker, the flags for device, dtype and determinism.
absl::StatusOr<std::vector<std::vector<std::string>>> ComputeFlags(
    int workers) {
  const std::string list = absl::GetFlag(FLAGS_device);
  const std::string dtype = absl::GetFlag(FLAGS_dtype);
  std::vector<std::vector<std::string>> flags(workers);
  std::vector<std::string> devices;
  if (!list.empty()) {
    ASSIGN_OR_RETURN(devices, DealDevices(list, workers, GpuCount()));
  }
  for (int i = 0; i < workers; ++i) {
    const std::string device = devices.empty() ? "cpu" : devices[i];
    RETURN_IF_ERROR(
        ComputeOf(device, dtype.empty() ? "fp32" : dtype, false).status());
    // A user's own daemon need not have these flags.
    if (!list.empty()) flags[i].push_back(absl::StrCat("--device=", device));
    if (!dtype.empty()) flags[i].push_back(absl::StrCat("--dtype=", dtype));
    if (absl::GetFlag(FLAGS_deterministic))
      flags[i].emplace_back("--deterministic");
  }
  return flags;
}

// Returns a worker's number of compute threads; 0: the environment sets it.
// Without a limit, each worker's loops would use all cores.
size_t ThreadsOf(const std::vector<int>& cores) {
  if (!cores.empty()) return cores.size();
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return 0;
  const auto workers = static_cast<size_t>(absl::GetFlag(FLAGS_workers));
  return std::max<size_t>(1, AllowedCores().size() / workers);
}

ProcessSpec WorkerSpec(std::string name, const std::string& program,
                       const std::vector<int>& cores,
                       const std::vector<std::string>& compute) {
  ProcessSpec spec;
  spec.name = std::move(name);
  spec.args = {program};
  spec.args.insert(spec.args.end(), compute.begin(), compute.end());
  for (const auto flag : absl::StrSplit(absl::GetFlag(FLAGS_worker_flags), ' ',
                                        absl::SkipEmpty())) {
    spec.args.emplace_back(flag);
  }
  spec.environment = {{"BATON_NAME", spec.name}};
  spec.cores = cores;
  if (const size_t threads = ThreadsOf(cores); threads > 0)
    spec.environment["OMP_NUM_THREADS"] = absl::StrCat(threads);
  spec.capture_output = true;
  spec.own_group = true;
  return spec;
}

absl::Status SetPolicy(RunPlan& plan) {
  ASSIGN_OR_RETURN(plan.grace, TimeOf(FLAGS_grace));
  plan.restarts.most = absl::GetFlag(FLAGS_restarts);
  ASSIGN_OR_RETURN(plan.restarts.window, TimeOf(FLAGS_restart_window));
  ASSIGN_OR_RETURN(plan.restarts.pause, TimeOf(FLAGS_restart_pause));
  plan.trainer_restarts = absl::GetFlag(FLAGS_trainer_restarts);
  const int least = absl::GetFlag(FLAGS_min_workers);
  if (least >= 0) plan.min_workers = least;
  if (absl::GetFlag(FLAGS_may_lose_workers)) plan.min_workers = 0;
  return absl::OkStatus();
}

absl::Status AddWorkers(int node, RunPlan& plan) {
  const int workers = absl::GetFlag(FLAGS_workers);
  const int all = workers + absl::GetFlag(FLAGS_spares);
  const int size = absl::GetFlag(FLAGS_cores_per_worker);
  std::vector<std::vector<int>> cores(all);
  if (size > 0) {
    ASSIGN_OR_RETURN(cores, DivideCores(all, size));
  }
  ASSIGN_OR_RETURN(const auto compute, ComputeFlags(all));
  const std::string daemon = absl::GetFlag(FLAGS_worker_program);
  ASSIGN_OR_RETURN(const std::string program,
                   FindProgram(daemon.empty() ? "baton-worker" : daemon));
  for (int i = 0; i < workers; ++i) {
    plan.workers.push_back(WorkerSpec(WorkerName(node, workers, i), program,
                                      cores[i], compute[i]));
    plan.workers.back().environment["BATON_RANK"] =
        absl::StrCat(node * workers + i + 1);
  }
  const int spares_before = node * (all - workers);
  for (int i = workers; i < all; ++i) {
    plan.spares.push_back(
        WorkerSpec(rpc::SpareName(spares_before + i - workers + 1), program,
                   cores[i], compute[i]));
    plan.spares.back().environment["BATON_RANK"] = "";
  }
  return absl::OkStatus();
}

absl::StatusOr<ProcessSpec> TrainerSpec(
    const std::vector<std::string>& trainer) {
  ProcessSpec spec;
  spec.name = "trainer";
  spec.args = trainer;
  ASSIGN_OR_RETURN(spec.args[0], FindProgram(trainer[0]));
  spec.environment = {{"BATON_NAME", "trainer"}, {"BATON_RANK", "0"}};
  return spec;
}

absl::StatusOr<RunPlan> MakePlan(const std::vector<std::string>& trainer,
                                 const NodeFlags& nodes,
                                 const std::string& rendezvous) {
  RunPlan plan;
  RETURN_IF_ERROR(SetPolicy(plan));
  RETURN_IF_ERROR(AddWorkers(nodes.node, plan));
  if (nodes.node == 0) {
    ASSIGN_OR_RETURN(plan.trainer, TrainerSpec(trainer));
  }
  const std::map<std::string, std::string> security = SecurityEnvironment();
  const int workers = AllWorkers(nodes);
  const bool own_wait = std::getenv("OMP_WAIT_POLICY") != nullptr ||
                        std::getenv("GOMP_SPINCOUNT") != nullptr;
  const auto meet = [&](ProcessSpec& spec, int world_size) {
    spec.environment.insert(security.begin(), security.end());
    spec.environment["BATON_RENDEZVOUS"] = rendezvous;
    spec.environment["BATON_WORLD_SIZE"] = absl::StrCat(world_size);
    spec.environment["BATON_PEERS"] = "";
    if (!own_wait) spec.environment["GOMP_SPINCOUNT"] = kSpins;
    if (!nodes.listen.empty()) spec.environment["BATON_LISTEN"] = nodes.listen;
  };
  for (ProcessSpec& spec : plan.workers) meet(spec, workers + 1);
  for (ProcessSpec& spec : plan.spares) meet(spec, rpc::kOneMore);
  if (plan.trainer) meet(*plan.trainer, workers + 1);
  return plan;
}

// Waits for the other nodes.
absl::StatusOr<std::unique_ptr<Nodes>> JoinNodes(const NodeFlags& flags,
                                                 RunPlan& plan) {
  NodesOptions options;
  options.node = flags.node;
  options.nodes = flags.nodes;
  options.workers = absl::GetFlag(FLAGS_workers);
  options.on_end = plan.on_end;
  rpc::ClusterOptions& join = options.join;
  join.rendezvous = flags.rendezvous;
  join.listen = flags.listen;
  join.join_timeout = flags.join_timeout;
  join.agent.lease = kNodeLease;
  ASSIGN_OR_RETURN(join.security,
                   SecurityFromFlags(absl::StrCat("node", flags.node)));
  plan.inbox = std::make_shared<RunInbox>();
  return Nodes::Join(std::move(options), plan.inbox);
}

absl::StatusOr<int> RunNode(const NodeFlags& flags, RunPlan plan) {
  ASSIGN_OR_RETURN(const auto nodes, JoinNodes(flags, plan));
  if (flags.node == 0) {
    plan.workers_elsewhere =
        AllWorkers(flags) - static_cast<int>(plan.workers.size());
  } else {
    plan.on_end = [&](const std::string& name, const std::string& how) {
      nodes->WorkerEnded(name, how);
    };
    plan.on_lost = [&](const std::string& name, const std::string& event) {
      nodes->WorkerLost(name, event);
    };
  }
  const absl::StatusOr<int> code = RunAll(plan);
  nodes->End(code.value_or(1), plan.grace);
  return code;
}

absl::StatusOr<int> Main(const std::vector<std::string>& trainer) {
  RETURN_IF_ERROR(CheckAddressFlag(FLAGS_rendezvous_listen));
  ASSIGN_OR_RETURN(const NodeFlags nodes, NodesFromFlags());
  RETURN_IF_ERROR(CheckFlags(trainer, nodes));
  std::string address = nodes.rendezvous;
  std::unique_ptr<rpc::RendezvousServer> rendezvous;
  if (nodes.node == 0 && !rpc::internal::IsEtcd(address)) {
    std::string listen = absl::GetFlag(FLAGS_rendezvous_listen);
    if (listen.empty()) listen = address.empty() ? "127.0.0.1:0" : address;
    ASSIGN_OR_RETURN(const rpc::Security security,
                     SecurityFromFlags(rpc::kRendezvousName));
    ASSIGN_OR_RETURN(rendezvous, rpc::RendezvousServer::Make(listen, security,
                                                             MaxMembers()));
    if (address.empty()) address = rendezvous->address();
    // Only for people: files get only what the trainer and the workers write.
    if (::isatty(STDERR_FILENO) == 1)
      Complain(absl::StrCat("the workers meet at ", address,
                            "; see them with batonctl status"),
               0);
  }
  ASSIGN_OR_RETURN(RunPlan plan, MakePlan(trainer, nodes, address));
  if (rendezvous != nullptr) {
    plan.on_end = [&](const std::string& name, const std::string& how) {
      rendezvous->StrikeOff(name, how);
    };
  }
  return nodes.nodes == 1 ? RunAll(plan) : RunNode(nodes, std::move(plan));
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  const absl::StatusOr<int> code = Main(ParseFlagsOrExit(argc, argv, kUsage));
  return code.ok() ? *code : ExitCode(code.status());
}
