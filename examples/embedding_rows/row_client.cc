// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/embedding_rows/row_client.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "core/future.h"
#include "core/status.h"
#include "examples/embedding_rows/zipf.h"
#include "models/distributed/server/parameter_server.h"

namespace baton::examples {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFilled = 16'384;  // rows at a time
constexpr int64_t kMostDrawn = 256;  // batches of keys that are drawn before
constexpr double kGradient = 1e-3;

}  // namespace

absl::StatusOr<std::unique_ptr<RowClient>> RowClient::Make(
    rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory,
    int64_t rank) {
  ASSIGN_OR_RETURN(auto client,
                   dist::ServerClient::Join(call.agent(), directory, rank));
  return std::unique_ptr<RowClient>(new RowClient(std::move(client)));
}

RowClient::RowClient(std::unique_ptr<dist::ServerClient> client)
    : client_(std::move(client)) {}

absl::Status RowClient::Push(const Tensor& keys, const Tensor& gradients) {
  return client_
      ->Do({.row_gradients = {{.keys = keys, .gradients = gradients}}})
      .Await(kNoLimit)
      .status();
}

// Rows are there from their first gradient on, which may be 0.
absl::StatusOr<int64_t> RowClient::Fill(int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += kFilled) {
    const int64_t count = std::min(kFilled, end - first);
    const Tensor keys = Tensor::Empty({count}, {.dtype = DType::kI64});
    for (int64_t i = 0; i < count; ++i) keys.data<int64_t>()[i] = first + i;
    RETURN_IF_ERROR(Push(keys, Tensor::Zeros({count, width()})));
  }
  return end - begin;
}

absl::Status RowClient::RunBatch(RowLoad load, const Tensor& keys,
                                 const Tensor& gradients) {
  if (load != RowLoad::kUpdate)
    RETURN_IF_ERROR(client_->PullRows(0, keys).Await(kNoLimit).status());
  if (load == RowLoad::kRead) return absl::OkStatus();
  return Push(keys, gradients);
}

absl::StatusOr<RowsDone> RowClient::Run(const RowOrder& order) {
  Zipf zipf(order.rows, order.skew, order.seed);
  std::vector<Tensor> keys;
  for (int64_t i = 0; i < std::min(order.batches, kMostDrawn); ++i)
    keys.push_back(zipf.Draw(order.batch));
  const Tensor gradients = Tensor::Full({order.batch, width()}, kGradient);
  const int64_t warm_up = order.batches / 10 + 1;
  RowsDone done;
  auto begin = Clock::now();
  for (int64_t i = -warm_up; i < order.batches; ++i) {
    if (i == 0) begin = Clock::now();
    const auto sent = Clock::now();
    RETURN_IF_ERROR(RunBatch(
        order.load, keys[static_cast<size_t>(i + warm_up) % keys.size()],
        gradients));
    const std::chrono::duration<float, std::micro> latency =
        Clock::now() - sent;
    if (i >= 0) done.latencies_us.push_back(latency.count());
  }
  done.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return done;
}

int64_t ResidentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;  // pages
  return resident * ::sysconf(_SC_PAGESIZE);
}

void RegisterRowClients(rpc::Registry& registry) {
  dist::RegisterParameterServers(registry);
  registry.Add<RowClient>();
  registry.AddFunction<&ResidentBytes>();
}

}  // namespace baton::examples
