// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/distributed/server/client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/distributed/step_count.h"
#include "core/mutex.h"
#include "core/status.h"
#include "models/distributed/server/one_cut.h"
#include "models/distributed/server/row_routes.h"
#include "models/distributed/server/shard_calls.h"

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

// The part of the client that outlives it while a trade is in progress.
class ServerClient::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(rpc::Agent& agent, const DirectoryLine& directories, ServedKeys served,
       const ClientOptions& options)
      : agent_(agent),
        options_(std::move(served.options)),
        layout_(std::make_shared<KeyLayout>(std::move(served.layout))),
        calls_(ShardCalls::Make(
            agent, directories, layout_->shards(),
            options.timeout.value_or(agent.default_timeout()))),
        compresses_(options.compression.kind != Compression::Kind::kNone),
        compressors_(layout_->shard_elements.size(),
                     Compressor(options.compression)),
        pushes_(layout_->shard_elements.size()) {}

  const ServerOptions& options() const { return options_; }
  const std::shared_ptr<const KeyLayout>& layout() const { return layout_; }
  ShardCalls& calls() const { return *calls_; }
  void set_id(TrainerId id) { id_ = id; }

  Future<Pulled> Do(Trade trade);
  // Joins every shard, so that each push counts in the same round everywhere.
  absl::Status JoinShards(int64_t rank);
  // Leaves at every shard, unless this trainer has already left.
  std::vector<Future<void>> Leave();

 private:
  // A trade's part for one shard.
  struct Share {
    int32_t shard = 0;
    int64_t sequence = 0;
    std::shared_ptr<const RowRoutes> routes;
    std::shared_ptr<JoinedRows> joined;
    // Includes the time that the share waits for earlier pushes.
    ShardCalls::Clock::time_point deadline;
    Gradients compressed{};  // computed only once, even if it is sent again
  };
  using TradePtr = std::shared_ptr<const Trade>;

  absl::Status Check(const Trade& trade) const;
  // Whether the trade is to pull one version, which one shard always has.
  bool PullsOneVersion(const Trade& trade) const;
  // Pulls again, at one cut, what a trade has pulled.
  Future<Pulled> PullAgain(const TradePtr& trade,
                           const std::shared_ptr<const RowRoutes>& routes,
                           const std::vector<ExchangeReply>& seen,
                           ShardCalls::Clock::time_point deadline);
  // Pushes to one shard are sent one after the other. The rows of the reply are
  // taken into the share's joined ones.
  Future<ExchangeReply> Send(const TradePtr& trade,
                             const std::shared_ptr<Share>& share);
  // Returns the reply to the share, which is sent after the previous push to
  // its shard; if that is over, by `now`, to be called without the mutex.
  Future<ExchangeReply> Queue(const TradePtr& trade,
                              const std::shared_ptr<Share>& share,
                              std::vector<std::function<void()>>& now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compress(const Trade& trade, Share& share);
  ExchangeRequest RequestOf(const Trade& trade, const Share& share,
                            const rpc::WorkerInfo& server) const;

  rpc::Agent& agent_;
  const ServerOptions options_;
  const std::shared_ptr<const KeyLayout> layout_;
  const std::shared_ptr<ShardCalls> calls_;
  const bool compresses_;
  std::vector<Compressor> compressors_;  // by shard; used by the push that is
                                         // being sent
  std::atomic<TrainerId> id_ = kReader;
  Mutex mutex_;
  // The last push to each shard; the next one is sent after it.
  std::vector<Future<ExchangeReply>> pushes_ ABSL_GUARDED_BY(mutex_);
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status ServerClient::Core::Check(const Trade& trade) const {
  if (!trade.gradients.empty())
    RETURN_IF_ERROR(layout_->Check(trade.gradients));
  if (trade.push && id_ == kReader) {
    return absl::FailedPreconditionError(
        "one who has not joined as a trainer only pulls");
  }
  for (const RowGradients& rows : trade.row_gradients)
    RETURN_IF_ERROR(CheckRowGradients(options_, rows));
  for (const RowKeys& rows : trade.rows)
    RETURN_IF_ERROR(CheckRowKeys(options_, rows.table, rows.keys));
  return absl::OkStatus();
}

bool ServerClient::Core::PullsOneVersion(const Trade& trade) const {
  return layout_->shards() > 1 && (trade.values || !trade.rows.empty()) &&
         trade.one_version.value_or(
             options_.mode == Consistency::kBulkSynchronous && id_ == kReader);
}

ExchangeRequest ServerClient::Core::RequestOf(
    const Trade& trade, const Share& share,
    const rpc::WorkerInfo& server) const {
  // Allocate where the server can see it, so that it is sent without a copy.
  const auto empty = [&](const Shape& shape, const TensorOptions& options) {
    const auto place = agent_.EmptyFor(server, shape, options);
    return place.ok() ? *place : Tensor::Empty(shape, options);
  };
  ExchangeRequest request{
      .trainer = id_,
      .sequence = share.sequence,
      .gradients = {.dense = {},
                    .rows = share.routes->Gradients(share.shard, empty)},
      .values = trade.values,
      .rows = share.routes->keys(share.shard),
      .cut = PullsOneVersion(trade)};
  if (trade.gradients.empty()) return request;
  if (compresses_) {
    request.gradients.dense = share.compressed.dense;
    request.gradients.index = share.compressed.index;
    return request;
  }
  request.gradients.dense =
      empty({layout_->shard_elements[static_cast<size_t>(share.shard)]}, {});
  layout_->Pack(share.shard, trade.gradients, request.gradients.dense);
  return request;
}

void ServerClient::Core::Compress(const Trade& trade, Share& share) {
  const auto at = static_cast<size_t>(share.shard);
  const Tensor flat = Tensor::Empty({layout_->shard_elements[at]});
  layout_->Pack(share.shard, trade.gradients, flat);
  share.compressed = compressors_[at].Compress(flat);
}

Future<ExchangeReply> ServerClient::Core::Send(
    const TradePtr& trade, const std::shared_ptr<Share>& share) {
  if (compresses_ && !trade->gradients.empty()) Compress(*trade, *share);
  return calls_
      ->At<ExchangeReply>(
          share->shard,
          [self = shared_from_this(), trade, share](
              const RRef<ServerShard>& primary,
              const rpc::CallOptions& options) {
            return primary.Async<&ServerShard::Exchange>(
                options, self->RequestOf(*trade, *share, primary.owner()));
          },
          share->deadline)
      .Then([share](const ExchangeReply& reply) {
        share->joined->Take(share->shard, reply.rows);
        return reply;
      });
}

Future<ExchangeReply> ServerClient::Core::Queue(
    const TradePtr& trade, const std::shared_ptr<Share>& share,
    std::vector<std::function<void()>>& now) {
  Promise<ExchangeReply> promise;
  const auto send = [self = shared_from_this(), trade, share, promise] {
    self->Send(trade, share)
        .OnReady([promise](const absl::StatusOr<ExchangeReply>& reply) {
          promise.Set(reply);
        });
  };
  Future<ExchangeReply>& last = pushes_[static_cast<size_t>(share->shard)];
  const Future<ExchangeReply> before = last;
  if (trade->push) last = promise.future();
  if (trade->push && before.valid() && !before.ready()) {
    before.OnReady([send](const absl::StatusOr<ExchangeReply>&) { send(); });
  } else {
    now.emplace_back(send);
  }
  return promise.future();
}

Future<Pulled> ServerClient::Core::PullAgain(
    const TradePtr& trade, const std::shared_ptr<const RowRoutes>& routes,
    const std::vector<ExchangeReply>& seen,
    ShardCalls::Clock::time_point deadline) {
  std::vector<ExchangeRequest> requests;
  for (int shard = 0; shard < layout_->shards(); ++shard) {
    requests.push_back({.trainer = id_,
                        .values = trade->values,
                        .rows = routes->keys(shard),
                        .cut = true});
  }
  return PullAtOneCut(agent_, calls_, std::move(requests), seen, deadline)
      .Then([routes,
             layout = layout_](const std::vector<ExchangeReply>& replies) {
        JoinedRows joined(routes);
        for (size_t shard = 0; shard < replies.size(); ++shard)
          joined.Take(static_cast<int>(shard), replies[shard].rows);
        return Pulled{
            .shards = replies, .rows = joined.All(), .layout = layout};
      });
}

Future<Pulled> ServerClient::Core::Do(Trade given) {
  if (absl::Status status = Check(given); !status.ok())
    return ReadyFuture<Pulled>(status);
  const auto trade = std::make_shared<const Trade>(std::move(given));
  const int shards = layout_->shards();
  const auto routes = std::make_shared<const RowRoutes>(
      options_, shards, trade->row_gradients, trade->rows);
  const auto joined = std::make_shared<JoinedRows>(routes);
  std::vector<Future<ExchangeReply>> replies;
  std::vector<std::function<void()>> now;
  const auto deadline = calls_->Deadline();
  {
    const MutexLock lock(mutex_);
    const int64_t sequence = trade->push ? ++sequence_ : 0;
    for (int32_t shard = 0; shard < shards; ++shard) {
      const auto share = std::make_shared<Share>(Share{.shard = shard,
                                                       .sequence = sequence,
                                                       .routes = routes,
                                                       .joined = joined,
                                                       .deadline = deadline});
      replies.push_back(Queue(trade, share, now));
    }
  }
  // Clients begin with different shards, so that no server waits until they are
  // done with another one.
  const size_t first =
      static_cast<size_t>(agent_.self().rank) % std::max<size_t>(now.size(), 1);
  std::rotate(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(first),
              now.end());
  for (const auto& send : now) send();
  if (trade->push) CountStep(agent_);
  return WaitAll(replies).Then(
      [self = shared_from_this(), trade, routes, joined,
       deadline](const std::vector<ExchangeReply>& replies) -> Future<Pulled> {
        if (self->PullsOneVersion(*trade) && !AreAtOneCut(replies))
          return self->PullAgain(trade, routes, replies, deadline);
        return ReadyFuture<Pulled>(Pulled{
            .shards = replies, .rows = joined->All(), .layout = self->layout_});
      });
}

absl::Status ServerClient::Core::JoinShards(int64_t rank) {
  std::vector<Future<int64_t>> joining;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    joining.push_back(calls_->At<int64_t>(
        shard, [id = id_.load(), rank](const RRef<ServerShard>& primary,
                                       const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Join>(options, id, rank);
        }));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> clocks,
                   WaitAll(joining).Await(kNoLimit));
  const int64_t latest = *std::max_element(clocks.begin(), clocks.end());
  std::vector<Future<void>> starting;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    if (clocks[static_cast<size_t>(shard)] == latest) continue;
    starting.push_back(calls_->At<void>(
        shard, [id = id_.load(), latest](const RRef<ServerShard>& primary,
                                         const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Start>(options, id, latest);
        }));
  }
  return WaitAll(starting).Await(kNoLimit);
}

std::vector<Future<void>> ServerClient::Core::Leave() {
  std::vector<Future<void>> leaving;
  const TrainerId id = id_.exchange(kReader);
  if (id == kReader) return leaving;
  for (int32_t shard = 0; shard < layout_->shards(); ++shard) {
    leaving.push_back(
        calls_->At<void>(shard, [id](const RRef<ServerShard>& primary,
                                     const rpc::CallOptions& options) {
          return primary.Async<&ServerShard::Leave>(options, id);
        }));
  }
  return leaving;
}

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
