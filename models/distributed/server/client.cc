// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/status.h"
#include "models/distributed/server/client_core.h"

namespace baton::dist {

void Pulled::CopyTo(const std::vector<Tensor>& tensors) const {
  for (size_t i = 0; i < shards.size(); ++i)
    layout->Unpack(static_cast<int>(i), shards[i].values, tensors);
}

int64_t Pulled::Version() const {
  int64_t version = 0;
  for (const ExchangeReply& shard : shards)
    version = std::max(version, shard.version);
  return version;
}

std::vector<int64_t> Pulled::Versions(int32_t key) const {
  std::vector<int64_t> versions;
  for (const KeyPart& part : layout->parts) {
    if (part.key == key)
      versions.push_back(shards[static_cast<size_t>(part.shard)].version);
  }
  return versions;
}

namespace {

// The directory may not know yet of a loss that this worker knows of; then it
// names a worker whose handle cannot be received.
absl::StatusOr<DirectoryLine> LineOf(rpc::Agent& agent,
                                     const RRef<ServerDirectory>& directory) {
  constexpr std::chrono::milliseconds kAskAgain{100};
  const auto deadline =
      std::chrono::steady_clock::now() + agent.default_timeout();
  for (;;) {
    auto line = directory.Async<&ServerDirectory::Line>().Await();
    if (!absl::IsUnavailable(line.status()) ||
        std::chrono::steady_clock::now() > deadline) {
      return line;
    }
    const Promise<void> later;
    agent.timer().After(kAskAgain, [later, &executor = agent.executor()] {
      executor.Post([later] { later.Set(absl::OkStatus()); });
    });
    RETURN_IF_ERROR(later.future().Await(kNoLimit));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerClient>> ServerClient::Join(
    rpc::Agent& agent, const RRef<ServerDirectory>& directory,
    std::optional<int64_t> rank, const ClientOptions& options) {
  RETURN_IF_ERROR(dist::Check(options.compression));
  ASSIGN_OR_RETURN(ServedKeys served,
                   directory.Async<&ServerDirectory::Served>().Await());
  ASSIGN_OR_RETURN(DirectoryLine line, LineOf(agent, directory));
  if (line.empty()) line = {directory};
  const auto core =
      std::make_shared<Core>(agent, line, std::move(served), options);
  std::unique_ptr<ServerClient> client(new ServerClient(core));
  if (!rank.has_value()) return client;
  ASSIGN_OR_RETURN(const TrainerId id,
                   directory.Async<&ServerDirectory::NewTrainer>().Await());
  core->set_id(id);
  RETURN_IF_ERROR(core->JoinShards(*rank));
  return client;
}

ServerClient::~ServerClient() { core_->Leave(); }

RRef<ServerDirectory> ServerClient::directory() const {
  return core_->calls().directory();
}
const ServerOptions& ServerClient::options() const { return core_->options(); }
const KeyLayout& ServerClient::layout() const { return *core_->layout(); }

int32_t ServerClient::TableOf(const std::string& name) const {
  const auto& tables = options().tables;
  const auto found =
      std::find_if(tables.begin(), tables.end(),
                   [&](const auto& table) { return table.name == name; });
  return found == tables.end() ? -1
                               : static_cast<int32_t>(found - tables.begin());
}

int64_t ServerClient::EpochOf(int32_t shard) const {
  return core_->calls().EpochOf(shard);
}

Future<Pulled> ServerClient::Do(Trade trade) {
  return core_->Do(std::move(trade));
}

Future<Tensor> ServerClient::PullRows(int32_t table, const Tensor& keys) {
  return Do({.push = false, .rows = {{.table = table, .keys = keys}}})
      .Then([](const Pulled& pulled) { return pulled.rows.front(); });
}

absl::Status ServerClient::Leave() {
  absl::Status first;
  for (const Future<void>& left : core_->Leave())
    first.Update(left.Await(kNoLimit));
  return first;
}

}  // namespace baton::dist
