// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Measures a recommender's load on parameter servers: rows of a large embedding
// table are read and stepped, and a few keys are used often:
//   baton-run --workers=5 --worker_program=embedding_rows
//       -- embedding_rows --servers=1 --clients=1,4 --load=read,update,train
// The first --servers workers serve, the others are clients. On GPUs, from the
// server's own process and from another one, and compared with a plain gather
// and a copy:
//   baton-run --workers=2 --worker_program=embedding_rows --device=cuda
//       -- embedding_rows --fixed --batch=1000000 --ahead=4 --skew=0
//       --load=local-read,local-gather,local-copy,read

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "examples/embedding_rows/experiment.h"
#include "examples/support/charts.h"
#include "examples/support/findings.h"
#include "examples/support/measurement.h"
#include "examples/support/number_flags.h"
#include "examples/support/optimizer_flags.h"
#include "examples/support/unused_flags.h"
#include "rpc/spares.h"
#include "tools/cluster_main.h"
#include "tools/command_line.h"

ABSL_FLAG(int64_t, rows, 1'000'000, "of the table, over all servers");
ABSL_FLAG(int64_t, width, 64, "numbers of a row");
ABSL_FLAG(int, servers, 1, "workers that keep the rows");
ABSL_FLAG(bool, backups, false, "every row has a second server");
ABSL_FLAG(std::vector<std::string>, clients, {"0"},
          "how many of the other workers are clients, one number after the "
          "other; 0: all");
ABSL_FLAG(std::vector<std::string>, load,
          std::vector<std::string>({"read", "update", "train"}),
          "what they do, one after the other: read rows, update them by "
          "gradients, or both (train); gather them from a tensor of their own, "
          "or copy as many bytes; with local- before it, by a client in the "
          "process of each server");
ABSL_FLAG(bool, fixed, false,
          "the table is of a fixed size, and its rows are found by number");
ABSL_FLAG(bool, in_host_memory, false,
          "the table is in host memory, even if the servers have a GPU");
ABSL_FLAG(int64_t, ahead, 1,
          "batches of a client that are under way at a time");
ABSL_FLAG(int64_t, batch, 4096, "rows at a time");
ABSL_FLAG(int64_t, batches, 200, "of each client");
ABSL_FLAG(double, skew, 1.05,
          "the k-th most wanted row is wanted k^-skew times as often; 0: all "
          "equally");
ABSL_FLAG(bool, fill, true,
          "store all rows first; otherwise servers compute the rows that were "
          "never updated whenever they are read");
ABSL_FLAG(
    bool, check, false,
    "compare the rows at the end with the updates that were acknowledged; "
    "wants --optimizer=sgd, and a power of two as --lr to be exact");
ABSL_FLAG(uint64_t, seed, 1, "of rows and keys");

namespace baton::examples {
namespace {

constexpr char kAbout[] =
    "Measures how many rows of an embedding table at servers are read and\n"
    "updated a second.\n"
    "Default: --optimizer=sgd --lr=0.01.";

struct Load {
  RowLoad load = RowLoad::kRead;
  bool at_servers = false;
};

absl::StatusOr<Load> LoadOf(std::string_view name) {
  constexpr std::string_view kAtServers = "local-";
  Load load{.at_servers = name.starts_with(kAtServers)};
  if (load.at_servers) name.remove_prefix(kAtServers.size());
  for (const auto& [kind, known] : {std::pair{RowLoad::kRead, "read"},
                                    {RowLoad::kUpdate, "update"},
                                    {RowLoad::kTrain, "train"},
                                    {RowLoad::kGather, "gather"},
                                    {RowLoad::kCopy, "copy"}}) {
    load.load = kind;
    if (name == known) return load;
  }
  return tools::CheckWord("--load", std::string(name),
                          {"read", "update", "train", "gather", "copy"});
}

absl::StatusOr<RowTableTask> TaskFromFlags() {
  RowTableTask task;
  task.rows = absl::GetFlag(FLAGS_rows);
  task.backups = absl::GetFlag(FLAGS_backups);
  ASSIGN_OR_RETURN(const optim::AnyOptions optimizer,
                   OptimizerFromFlags({.lr = 0.01}));
  task.table = {.name = "rows",
                .width = absl::GetFlag(FLAGS_width),
                .rows = absl::GetFlag(FLAGS_fixed) ? task.rows : 0,
                .start = dist::RowStart::kNormal,
                .scale = 0.01,
                .seed = absl::GetFlag(FLAGS_seed),
                .rule = optimizer,
                .in_host_memory = absl::GetFlag(FLAGS_in_host_memory)};
  return task;
}

absl::Status CheckFlags() {
  RETURN_IF_ERROR(CheckFindingsFlags());
  RETURN_IF_ERROR(tools::AtLeast(1, FLAGS_rows, FLAGS_width, FLAGS_batch,
                                 FLAGS_batches, FLAGS_ahead, FLAGS_servers));
  RETURN_IF_ERROR(tools::AtLeast(0, FLAGS_skew));
  for (const std::string& load : absl::GetFlag(FLAGS_load))
    RETURN_IF_ERROR(LoadOf(load).status());
  if (absl::GetFlag(FLAGS_fixed))
    RETURN_IF_ERROR(CheckUnused({"check"}, "fixed"));
  ASSIGN_OR_RETURN(RowTableTask task, TaskFromFlags());
  RETURN_IF_ERROR(dist::Check(dist::ServerOptions{.tables = {task.table}}));
  return NumbersOf(FLAGS_clients, 0).status();
}

absl::StatusOr<std::vector<std::string>> ServersOf(const rpc::Agent& agent) {
  const auto count = static_cast<size_t>(absl::GetFlag(FLAGS_servers));
  std::vector<std::string> workers;
  for (const rpc::WorkerInfo& worker : rpc::OthersButSpares(agent))
    workers.push_back(worker.name);
  if (workers.size() <= count)
    return tools::WrongFlag("servers", "leaves no worker to be a client");
  workers.resize(count);
  return workers;
}

absl::StatusOr<Measurement> Measure(RowExperiment& experiment,
                                    const RowTableTask& task,
                                    const std::string& load, int64_t clients) {
  RowOrder order{.rows = task.rows,
                 .skew = absl::GetFlag(FLAGS_skew),
                 .seed = absl::GetFlag(FLAGS_seed),
                 .batch = absl::GetFlag(FLAGS_batch),
                 .ahead = absl::GetFlag(FLAGS_ahead),
                 .batches = absl::GetFlag(FLAGS_batches)};
  ASSIGN_OR_RETURN(const Load what, LoadOf(load));
  order.load = what.load;
  ASSIGN_OR_RETURN(const RowFigures figures,
                   what.at_servers ? experiment.RunAtServers(order)
                                   : experiment.Run(order, clients));
  const std::vector<double> latencies(figures.latencies_us.begin(),
                                      figures.latencies_us.end());
  std::fprintf(stderr, "%s by %d: %.3g rows/s\n", load.c_str(),
               static_cast<int>(figures.clients),
               static_cast<double>(figures.rows) / figures.seconds);
  const bool fixed = task.table.rows > 0;
  Measurement measured{
      .variant = absl::StrCat(load, " by ", figures.clients),
      .items = figures.rows,
      .seconds = {figures.seconds},
      .details = {{"load", load},
                  {"clients", figures.clients},
                  {"lost_clients", experiment.lost()},
                  {"servers", static_cast<int64_t>(task.servers.size())},
                  {"table_rows", task.rows},
                  {"width", task.table.width},
                  {"skew", order.skew},
                  {"fixed", fixed},
                  {"in_host_memory", task.table.in_host_memory},
                  {"percentiles", kPercentiles},
                  {"batch_latency_us", PercentilesOf(latencies)}},
      .item = "rows",
      .compared = load};
  // The processes' sizes do not include a GPU's memory, where a table of fixed
  // size may be as a whole, and others but for their keys.
  if (!fixed)
    measured.details.push_back({"table_bytes", experiment.BytesOfTable()});
  return measured;
}

absl::Status Fill(RowExperiment& experiment, const RowTableTask& task) {
  ASSIGN_OR_RETURN(const double seconds, experiment.Fill());
  const auto bytes = static_cast<double>(experiment.BytesOfTable());
  std::fprintf(stderr,
               "%lld rows of %lld are there after %.1f s: %.2f GB, %.0f bytes "
               "a row\n",
               static_cast<long long>(task.rows),
               static_cast<long long>(task.table.width), seconds, bytes * 1e-9,
               bytes / static_cast<double>(task.rows));
  return absl::OkStatus();
}

absl::Status Run(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(RowTableTask task, TaskFromFlags());
  ASSIGN_OR_RETURN(task.servers, ServersOf(agent));
  RETURN_IF_ERROR(tools::Print(
      absl::StrCat(absl::StrJoin(task.servers, ", "), " serves\n")));
  ASSIGN_OR_RETURN(const std::vector<int64_t> clients,
                   NumbersOf(FLAGS_clients, 0));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowExperiment> experiment,
                   RowExperiment::Make(agent, task));
  if (absl::GetFlag(FLAGS_fill) && task.table.rows == 0)
    RETURN_IF_ERROR(Fill(*experiment, task));
  if (absl::GetFlag(FLAGS_check)) RETURN_IF_ERROR(experiment->CountUpdates());
  Findings findings;
  std::vector<Curve> curves;
  for (const std::string& load : absl::GetFlag(FLAGS_load)) {
    curves.push_back({.name = load});
    for (const int64_t count : clients) {
      ASSIGN_OR_RETURN(Measurement measured,
                       Measure(*experiment, task, load, count));
      curves.back().x.push_back(
          static_cast<double>(std::get<int64_t>(measured.details[1].value)));
      curves.back().y.push_back(Summarize(measured).items_per_s * 1e-6);
      findings.measurements.push_back(std::move(measured));
    }
  }
  findings.further =
      FormatPercentiles(findings.measurements, {"batch_latency_us"});
  findings.charts = {
      {"rows", CurvesChart("rows", "Rows of an embedding", "clients",
                           "million rows/s", curves)}};
  RETURN_IF_ERROR(Tell(findings));
  if (!absl::GetFlag(FLAGS_check)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t updates, experiment->CompareRows());
  return tools::Print(
      absl::StrCat("all ", updates, " acknowledged updates are in the rows\n"));
}

}  // namespace
}  // namespace baton::examples

int main(int argc, char** argv) {
  return baton::tools::ClusterMain(
      argc, argv,
      {.workers = 5,
       .arguments = "--clients=1,4 --load=read,update,train",
       .about = baton::examples::kAbout,
       .train = baton::examples::Run,
       .check = baton::examples::CheckFlags,
       .add = baton::examples::RegisterRowClients});
}
