// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "core/future.h"
#include "core/tensor.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/directory.h"
#include "rpc/call_context.h"
#include "rpc/exports.h"
#include "rpc/registry.h"

namespace baton::examples {

// What clients do with each batch of rows.
enum class RowLoad : uint8_t {
  kRead = 0,    // pull them
  kUpdate = 1,  // push gradients to them
  kTrain = 2,   // pull them, then push
  // For comparison, without servers, on the client's device:
  kGather = 3,  // take them out of a local tensor
  kCopy = 4,    // copy as many bytes
};

struct RowOrder {
  RowLoad load = RowLoad::kRead;
  int64_t rows = 0;  // in the table; keys are 0 .. rows - 1
  double skew = 0;   // of the keys' popularity (zipf.h)
  uint64_t seed = 1;
  int64_t batch = 0;    // keys at a time, possibly repeated
  int64_t ahead = 1;    // batches under way at a time
  int64_t batches = 0;  // that count; a tenth as many come first
  static constexpr auto Fields() {
    using O = RowOrder;
    return std::tuple{&O::load,  &O::rows,  &O::skew,   &O::seed,
                      &O::batch, &O::ahead, &O::batches};
  }
};

// The keys that a client uses again and again, on the CPU.
std::vector<Tensor> KeysOf(const RowOrder& order);
// Returns the number of batches of a client, those that come first included.
int64_t BatchesOf(const RowOrder& order);
// Each number of each gradient: a power of two, so that sums of it are exact.
inline constexpr double kRowGradient = 1.0 / 1024;

struct RowsDone {
  double seconds = 0;
  std::vector<float> latencies_us;  // of each batch
  static constexpr auto Fields() {
    return std::tuple{&RowsDone::seconds, &RowsDone::latencies_us};
  }
};

// A client of the first table of parameter servers. Lives at a worker. Unless
// the table is in host memory, gradients are on the worker's device, and so are
// keys if it has a fixed size. Calls come one at a time.
class RowClient {
 public:
  static absl::StatusOr<std::unique_ptr<RowClient>> Make(
      rpc::CallContext& call, const RRef<dist::ServerDirectory>& directory,
      int64_t rank);

  // Creates rows [begin, end) with their initial values; returns how many. Like
  // Run, ends early when the caller is lost.
  absl::StatusOr<int64_t> Fill(rpc::CallContext& call, int64_t begin,
                               int64_t end);
  absl::StatusOr<RowsDone> Run(rpc::CallContext& call, const RowOrder& order);

  using Exports =
      rpc::Methods<&RowClient::Make, &RowClient::Fill, &RowClient::Run>;

 private:
  struct Batches {
    std::vector<Tensor> keys;
    Tensor gradients;
  };

  RowClient(std::shared_ptr<dist::ServerClient> client, Device device);
  const dist::RowTableOptions& table() const {
    return client_->options().tables.front();
  }
  Batches Draw(const RowOrder& order) const;
  // Starts one batch. Returns the rows if any were read.
  Future<Tensor> Begin(RowLoad load, const Tensor& keys,
                       const Tensor& gradients);
  // Waits until the batch is there and, on a GPU, until the work that makes it
  // has ended.
  absl::Status Await(const Future<Tensor>& batch) const;

  const std::shared_ptr<dist::ServerClient> client_;
  const Device device_;
  Tensor own_;  // the rows for kGather
};

// Returns the resident memory of this process in bytes.
int64_t ResidentBytes();

// Registers what dist::RegisterStock does not.
void RegisterRowClients(rpc::Registry& registry);

}  // namespace baton::examples
