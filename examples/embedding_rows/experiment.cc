// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/experiment.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/future.h"
#include "core/status.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

const rpc::CallOptions kUnlimited{.timeout = kNoLimit};

}  // namespace

RowExperiment::RowExperiment(rpc::Agent& agent, RowTableTask task)
    : agent_(agent), task_(std::move(task)) {}

absl::StatusOr<std::unique_ptr<RowExperiment>> RowExperiment::Make(
    rpc::Agent& agent, const RowTableTask& task) {
  std::unique_ptr<RowExperiment> made(new RowExperiment(agent, task));
  ASSIGN_OR_RETURN(made->bytes_before_, made->BytesOfServers());
  dist::ServerOptions options;
  options.mode = dist::Consistency::kAsynchronous;
  options.trainers = static_cast<int32_t>(task.clients.size());
  options.backups = task.backups;
  options.tables = {task.table};
  ASSIGN_OR_RETURN(made->servers_, dist::ParameterServers::Make(
                                       agent, task.servers, options, {}));
  std::vector<Future<RRef<RowClient>>> clients;
  int64_t rank = 0;
  for (const std::string& worker : task.clients) {
    clients.push_back(rpc::Create<RowClient>(
        agent, worker, made->servers_->directory(), rank++));
  }
  ASSIGN_OR_RETURN(made->clients_, WaitAll(clients).Await(kNoLimit));
  return made;
}

absl::StatusOr<double> RowExperiment::Fill() {
  const auto begin = Clock::now();
  const auto all = static_cast<int64_t>(clients_.size());
  std::vector<Future<void>> filling;
  for (int64_t i = 0; i < all; ++i) {
    filling.push_back(clients_[static_cast<size_t>(i)].Async<&RowClient::Fill>(
        kUnlimited, task_.rows * i / all, task_.rows * (i + 1) / all));
  }
  RETURN_IF_ERROR(WaitAll(filling).Await(kNoLimit));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::StatusOr<RowFigures> RowExperiment::Run(const RowOrder& order,
                                              int64_t clients) {
  std::vector<Future<RowsDone>> running;
  for (int64_t i = 0; i < clients; ++i) {
    RowOrder own = order;
    own.seed += static_cast<uint64_t>(i);
    running.push_back(clients_[static_cast<size_t>(i)].Async<&RowClient::Run>(
        kUnlimited, own));
  }
  ASSIGN_OR_RETURN(const std::vector<RowsDone> done,
                   WaitAll(running).Await(kNoLimit));
  RowFigures figures;
  for (const RowsDone& each : done) {
    figures.rows += order.batch * order.batches;
    figures.seconds = std::max(figures.seconds, each.seconds);
    figures.latencies_us.insert(figures.latencies_us.end(),
                                each.latencies_us.begin(),
                                each.latencies_us.end());
  }
  return figures;
}

absl::StatusOr<int64_t> RowExperiment::BytesOfServers() {
  int64_t bytes = 0;
  for (const std::string& server : task_.servers) {
    ASSIGN_OR_RETURN(const int64_t of_one,
                     agent_.Async<&ResidentBytes>(server).Await());
    bytes += of_one;
  }
  return bytes;
}

absl::StatusOr<int64_t> RowExperiment::BytesOfTable() {
  ASSIGN_OR_RETURN(const int64_t bytes, BytesOfServers());
  return bytes - bytes_before_;
}

}  // namespace baton::examples
