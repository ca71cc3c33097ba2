// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/row_client.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <utility>

#include "core/ops/indexing.h"
#include "core/status.h"
#include "examples/embedding_rows/zipf.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFilled = 16'384;  // rows at a time
// Limits of the batches that are drawn in advance, and of all their keys.
constexpr int64_t kMostBatches = 256, kMostKeys = 16 << 20;

Future<Tensor> Push(dist::ServerClient& client, const Tensor& keys,
                    const Tensor& gradients) {
  return client.Do({.row_gradients = {{.keys = keys, .gradients = gradients}}})
      .Then([](const dist::Pulled&) { return Tensor(); });
}

int64_t WarmUpOf(const RowOrder& order) { return order.batches / 10 + 1; }

}  // namespace

std::vector<Tensor> KeysOf(const RowOrder& order) {
  Zipf zipf(order.rows, order.skew, order.seed);
  std::vector<Tensor> keys;
  const int64_t count =
      std::min({order.batches, kMostBatches, kMostKeys / order.batch + 1});
  for (int64_t i = 0; i < count; ++i) keys.push_back(zipf.Draw(order.batch));
  return keys;
}

int64_t BatchesOf(const RowOrder& order) {
  return WarmUpOf(order) + order.batches;
}

absl::StatusOr<std::unique_ptr<RowClient>> RowClient::Make(
    rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory,
    int64_t rank) {
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(call.agent(), directory, rank));
  const bool in_host_memory = client->options().tables.front().in_host_memory;
  const Device device = in_host_memory ? Device::Cpu() : call.compute().device;
  return std::unique_ptr<RowClient>(new RowClient(std::move(client), device));
}

RowClient::RowClient(std::shared_ptr<dist::ServerClient> client, Device device)
    : client_(std::move(client)), device_(device) {}

// A row exists from its first gradient on, even if that is 0.
absl::StatusOr<int64_t> RowClient::Fill(rpc::CallContext& call, int64_t begin,
                                        int64_t end) {
  for (int64_t first = begin; first < end; first += kFilled) {
    RETURN_IF_ERROR(call.token().reason());
    const int64_t count = std::min(kFilled, end - first);
    const Tensor keys = Tensor::Empty({count}, {.dtype = DType::kI64});
    for (int64_t i = 0; i < count; ++i) keys.data<int64_t>()[i] = first + i;
    RETURN_IF_ERROR(Push(*client_, keys, Tensor::Zeros({count, table().width}))
                        .Await(kNoLimit)
                        .status());
  }
  return end - begin;
}

RowClient::Batches RowClient::Draw(const RowOrder& order) const {
  const bool by_number = table().rows > 0 || order.load == RowLoad::kGather;
  Batches batches;
  for (const Tensor& keys : KeysOf(order))
    batches.keys.push_back(keys.To(by_number ? device_ : Device::Cpu()));
  batches.gradients = Tensor::Full({order.batch, table().width}, kRowGradient,
                                   {.device = device_});
  return batches;
}

Future<Tensor> RowClient::Begin(RowLoad load, const Tensor& keys,
                                const Tensor& gradients) {
  switch (load) {
    case RowLoad::kRead:
      return client_->PullRows(0, keys);
    case RowLoad::kUpdate:
      return Push(*client_, keys, gradients);
    case RowLoad::kTrain:
      return client_->PullRows(0, keys).Then(
          [client = client_, keys, gradients](const Tensor&) {
            return Push(*client, keys, gradients);
          });
    case RowLoad::kGather:
      return ReadyFuture<Tensor>(ops::Embedding(own_, keys));
    case RowLoad::kCopy:
      return ReadyFuture<Tensor>(gradients.Clone());
  }
  return ReadyFuture<Tensor>(absl::InvalidArgumentError("no such load"));
}

absl::Status RowClient::Await(const Future<Tensor>& batch) const {
  ASSIGN_OR_RETURN(const Tensor rows, batch.Await(kNoLimit));
  if (rows.defined()) rows.Slice(0, 0, 1).To(Device::Cpu());
  return absl::OkStatus();
}

absl::StatusOr<RowsDone> RowClient::Run(rpc::CallContext& call,
                                        const RowOrder& order) {
  const Batches batches = Draw(order);
  if (order.load == RowLoad::kGather)
    own_ = Tensor::Zeros({order.rows, table().width}, {.device = device_});
  const auto batch = [&](int64_t number) -> const Tensor& {
    return batches.keys[static_cast<size_t>(number) % batches.keys.size()];
  };
  const int64_t warm_up = WarmUpOf(order), all = BatchesOf(order);
  RowsDone done;
  auto begin = Clock::now();
  std::deque<std::pair<Clock::time_point, Future<Tensor>>> under_way;
  int64_t sent = 0;
  for (int64_t i = 0; i < all; ++i) {
    RETURN_IF_ERROR(call.token().reason());
    if (i == warm_up) begin = Clock::now();
    for (; sent < std::min(all, i + order.ahead); ++sent) {
      under_way.emplace_back(Clock::now(),
                             Begin(order.load, batch(sent), batches.gradients));
    }
    const auto [since, future] = std::move(under_way.front());
    under_way.pop_front();
    RETURN_IF_ERROR(Await(future));
    const std::chrono::duration<float, std::micro> latency =
        Clock::now() - since;
    if (i >= warm_up) done.latencies_us.push_back(latency.count());
  }
  // Waits until a GPU has finished its last steps.
  if (order.load == RowLoad::kUpdate || order.load == RowLoad::kTrain)
    RETURN_IF_ERROR(Await(client_->PullRows(0, batch(0).Slice(0, 0, 1))));
  done.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  own_ = {};
  return done;
}

int64_t ResidentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;  // pages
  return resident * ::sysconf(_SC_PAGESIZE);
}

void RegisterRowClients(rpc::Registry& registry) {
  registry.Add<RowClient>();
  registry.AddFunction<&ResidentBytes>();
}

}  // namespace baton::examples
