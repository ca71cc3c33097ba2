// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/experiment.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/future.h"
#include "core/status.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

const rpc::CallOptions kUnlimited{.timeout = kNoLimit};

std::vector<std::string> OthersThan(const rpc::Agent& agent,
                                    const std::vector<std::string>& workers) {
  std::vector<std::string> others;
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (std::find(workers.begin(), workers.end(), worker.name) == workers.end())
      others.push_back(worker.name);
  }
  return others;
}

}  // namespace

RowExperiment::RowExperiment(rpc::Agent& agent, RowTableTask task)
    : agent_(agent),
      task_(std::move(task)),
      clients_(
          agent,
          [this](const std::string& worker) { return MakeClient(worker); },
          /*most=*/0, task_.servers),
      at_servers_(
          agent,
          [this](const std::string& worker) { return MakeClient(worker); },
          static_cast<int64_t>(task_.servers.size()),
          OthersThan(agent, task_.servers)) {}

Future<RRef<RowClient>> RowExperiment::MakeClient(const std::string& worker) {
  return rpc::Create<RowClient>(agent_, worker, servers_->directory(),
                                ranks_++);
}

absl::StatusOr<std::unique_ptr<RowExperiment>> RowExperiment::Make(
    rpc::Agent& agent, const RowTableTask& task) {
  std::unique_ptr<RowExperiment> made(new RowExperiment(agent, task));
  made->bytes_before_ = made->BytesOfServers();
  dist::ServerOptions options;
  options.mode = dist::Consistency::kAsynchronous;
  options.backups = task.backups;
  options.tables = {task.table};
  ASSIGN_OR_RETURN(made->servers_, dist::ParameterServers::Make(
                                       agent, task.servers, options, {}));
  return made;
}

absl::StatusOr<double> RowExperiment::Fill() {
  const auto begin = Clock::now();
  for (std::vector<RowRange> rest = {{0, task_.rows}}; !rest.empty();) {
    ASSIGN_OR_RETURN(rest, FillSome(rest));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::StatusOr<std::vector<RowExperiment::RowRange>> RowExperiment::FillSome(
    const std::vector<RowRange>& ranges) {
  ASSIGN_OR_RETURN(const Clients present,
                   clients_.Muster(Participants<RowClient>::Wait::kForAll));
  std::vector<RowRange> rest;
  bool some = false;
  for (const RowRange& range : ranges) {
    const auto all = static_cast<int64_t>(present.size());
    const auto share = [&](size_t i) {
      return range.begin +
             (range.end - range.begin) * static_cast<int64_t>(i) / all;
    };
    ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> filled,
                     clients_.CallAll<int64_t>(
                         present, [&](const RRef<RowClient>& client, size_t i) {
                           return client.Async<&RowClient::Fill>(
                               kUnlimited, share(i), share(i + 1));
                         }));
    for (size_t i = 0; i < filled.size(); ++i) {
      some = some || filled[i].has_value();
      if (!filled[i].has_value()) rest.push_back({share(i), share(i + 1)});
    }
  }
  if (!some) return clients_.last_loss();
  return rest;
}

absl::StatusOr<RowFigures> RowExperiment::Run(const RowOrder& order,
                                              int64_t clients) {
  ASSIGN_OR_RETURN(Clients present,
                   clients_.Muster(Participants<RowClient>::Wait::kForAll));
  const auto most = static_cast<int64_t>(present.size());
  if (clients > most && lost() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("of ", clients, " clients ", most, " are there"));
  }
  if (clients > 0) present.resize(static_cast<size_t>(std::min(clients, most)));
  return RunBy(clients_, present, order);
}

absl::Status RowExperiment::CountUpdates() {
  ASSIGN_OR_RETURN(check_,
                   RowCheck::Make(agent_, servers_->directory(), task_.rows));
  return absl::OkStatus();
}

absl::StatusOr<RowFigures> RowExperiment::RunAtServers(const RowOrder& order) {
  ASSIGN_OR_RETURN(const Clients present,
                   at_servers_.Muster(Participants<RowClient>::Wait::kForAll));
  return RunBy(at_servers_, present, order);
}

absl::StatusOr<RowFigures> RowExperiment::RunBy(Participants<RowClient>& all,
                                                const Clients& clients,
                                                const RowOrder& order) {
  const auto own = [&](size_t i) {
    RowOrder of_client = order;
    of_client.seed += static_cast<uint64_t>(i);
    return of_client;
  };
  ASSIGN_OR_RETURN(const std::vector<std::optional<RowsDone>> done,
                   all.CallAll<RowsDone>(
                       clients, [&](const RRef<RowClient>& client, size_t i) {
                         return client.Async<&RowClient::Run>(kUnlimited,
                                                              own(i));
                       }));
  RowFigures figures;
  for (size_t i = 0; i < done.size(); ++i) {
    const std::optional<RowsDone>& each = done[i];
    if (!each.has_value()) continue;
    if (check_ != nullptr) check_->Add(own(i));
    ++figures.clients;
    figures.rows += order.batch * order.batches;
    figures.seconds = std::max(figures.seconds, each->seconds);
    figures.latencies_us.insert(figures.latencies_us.end(),
                                each->latencies_us.begin(),
                                each->latencies_us.end());
  }
  if (figures.clients == 0) return all.last_loss();
  return figures;
}

// Leaves out lost servers; without a backup, the clients' calls report the
// loss.
int64_t RowExperiment::BytesOfServers() {
  int64_t bytes = 0;
  for (const std::string& server : task_.servers)
    bytes += agent_.Async<&ResidentBytes>(server).Await().value_or(0);
  return bytes;
}

int64_t RowExperiment::BytesOfTable() {
  return BytesOfServers() - bytes_before_;
}

}  // namespace baton::examples
