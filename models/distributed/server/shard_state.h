// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/shared_mutex.h"
#include "models/distributed/server/clocks.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// What a trainer pushes to one shard.
struct Gradients {
  // f32 or bf16 [elements of the shard]; undefined: of rows alone.
  Tensor dense{};
  Tensor index{};  // i64 [n]: `dense` is f32 [n], of these elements alone
  std::vector<RowGradients> rows{};
  static constexpr auto Fields() {
    return std::tuple{&Gradients::dense, &Gradients::index, &Gradients::rows};
  }
};

// The rows of one push, as the tables of this process take them.
using PreparedTables =
    std::vector<std::pair<size_t, std::unique_ptr<const PreparedRows>>>;
using PreparedPush = std::shared_ptr<const PreparedTables>;

// What changes a shard. Its primary numbers them, and primary and backup apply
// them in that order.
struct ShardUpdate {
  enum class Kind : uint8_t { kJoin = 0, kLeave = 1, kPush = 2, kTouch = 3 };

  int64_t index = 0;
  Kind kind = Kind::kPush;
  TrainerId trainer{};
  ServedTrainer joining{};  // of kJoin
  int64_t sequence = 0;     // of kPush
  Gradients gradients{};    // of kPush; of kTouch the keys alone
  PreparedPush prepared{};  // of kPush, where they are; not sent
  static constexpr auto Fields() {
    using U = ShardUpdate;
    return std::tuple{&U::index,   &U::kind,     &U::trainer,
                      &U::joining, &U::sequence, &U::gradients};
  }
};

// Gradients that wait for the end of a round, in the order of ranks.
using OpenRound = std::map<std::pair<int64_t, TrainerId>, Gradients>;

// All that a shard is: what a replica of it begins with. A new shard's has
// values alone.
struct ShardImage {
  int64_t version = 0;
  Tensor values;                // f32 [elements]
  std::vector<Tensor> slots{};  // the rule's state, as the values lie
  int64_t steps = 0;            // of the rule
  ClockReadings clocks{};
  OpenRound round{};
  std::vector<RowTableImage> tables{};
  static constexpr auto Fields() {
    using I = ShardImage;
    return std::tuple{&I::version, &I::values, &I::slots, &I::steps,
                      &I::clocks,  &I::round,  &I::tables};
  }
};

// A step of a folder of checkpoints, which has rows that a shard begins with.
struct SavedRows {
  std::string folder;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&SavedRows::folder, &SavedRows::step};
  }
};

// What a replica of a shard is made of.
struct ShardSpec {
  ServerOptions options;
  int32_t shard = 0;
  int32_t shards = 1;
  std::vector<std::string> servers{};  // by name, all, in order
  ShardImage image;
  std::optional<SavedRows> saved{};  // the rows, where the image has none
  static constexpr auto Fields() {
    using S = ShardSpec;
    return std::tuple{&S::options, &S::shard, &S::shards,
                      &S::servers, &S::image, &S::saved};
  }
};

// Who only reads, without joining, and waits for nobody.
inline constexpr TrainerId kReader{0};

// What a trainer wants of a shard: to push, to pull, or both in this order.
struct ExchangeRequest {
  TrainerId trainer{};
  int64_t sequence = 0;  // of the trainer's pushes to this shard; 0: none
  Gradients gradients{};
  bool values = false;  // all dense values of the shard
  std::vector<RowKeys> rows{};
  static constexpr auto Fields() {
    using R = ExchangeRequest;
    return std::tuple{&R::trainer, &R::sequence, &R::gradients, &R::values,
                      &R::rows};
  }
};

struct ExchangeReply {
  int64_t epoch = 0;
  int64_t version = 0;  // of what was pulled: updates of the shard until then
  // Pushes counted for the trainer and for the slowest one, when this was read.
  int64_t clock = 0;
  int64_t slowest = 0;
  Tensor values{};             // f32 [elements], if wanted
  std::vector<Tensor> rows{};  // f32 [N, width] of each that was wanted
  static constexpr auto Fields() {
    using R = ExchangeReply;
    return std::tuple{&R::epoch,   &R::version, &R::clock,
                      &R::slowest, &R::values,  &R::rows};
  }
};

// What a shard knows and how updates change it: the same updates in the same
// order give the same bits, at a primary as at its backup. Apply is for one
// thread at a time, clocks and Image for that thread; all others are
// thread-safe, and read beside each other between two updates.
class ShardState {
 public:
  ShardState(const ShardSpec& spec, Device device);

  Device device() const { return device_; }
  const ServerOptions& options() const { return options_; }
  const Clocks& clocks() const { return clocks_; }

  // InvalidArgument for gradients that do not fit.
  absl::Status Check(const Gradients& gradients) const;
  // Does beforehand, of what Apply does to one push of checked gradients, all
  // that may be beside other updates. Null where there is nothing to do.
  PreparedPush Prepare(const Gradients& gradients) const;
  // Of a checked update that Clocks::MayGo allows.
  void Apply(const ShardUpdate& update);
  // The same, of asynchronous mode, for pushes of different trainers one after
  // the other, in one pass over the values, and with the rows of all dealt out
  // to several threads: readers see all or none.
  void ApplyPushes(const std::vector<ShardUpdate>& pushes);

  // A copy, between two updates.
  ShardImage Image() const;

  // Whether the trainer is there, or only reads, and need not wait for others.
  bool MayPull(TrainerId trainer) const;
  // What a checked request pulls; without the epoch. `empty` makes the tensors
  // for rows, on the device of their table.
  using Empty =
      std::function<Tensor(const Shape& shape, const TensorOptions& options)>;
  ExchangeReply Read(const ExchangeRequest& request, const Empty& empty) const;
  int64_t version() const;
  bool IsBounded(int32_t table) const;

 private:
  struct DenseValues {
    int64_t version = 0;
    Tensor values;  // never written again
  };

  // What one step is by: the sum of the dense gradients, and of the rows', in
  // order.
  struct StepWork {
    std::vector<Tensor> dense;
    PreparedPush rows;
  };

  absl::Status CheckDense(const Gradients& gradients) const;
  void TakeIntoRound(const ShardUpdate& push);
  void ApplyTouch(const Gradients& used);
  // By the sum of these, but for `rows`, where these are prepared already.
  StepWork WorkOf(const std::vector<Gradients>& summed,
                  PreparedPush rows = nullptr) const;
  PreparedPush PrepareRows(const std::vector<Gradients>& summed) const;
  // One step after the other, by their gradients multiplied by `scale`.
  void StepBy(const std::vector<StepWork>& steps, double scale);
  // Of the dense gradients of each step.
  using DenseSteps = std::vector<std::vector<Tensor>>;
  // Elements begin .. end of all steps.
  struct DensePart {
    int64_t begin, end;
    const Tensor &before, &after;
    const Tensor& factor;  // of the gradient; or undefined
    int64_t done;          // steps, before these
  };
  // `sum`: to be used again for the next part.
  void StepPart(const DensePart& part, const DenseSteps& steps,
                Tensor& sum) const;
  // The values that these make of those that are there.
  Tensor StepDense(const DenseSteps& steps, double scale);
  Tensor values() const;

  const ServerOptions options_;
  const int32_t shards_;
  const Device device_;
  const Shape shape_;          // of the dense values
  std::vector<Tensor> slots_;  // the rule's state, as the values lie
  int64_t steps_;              // of dense values
  OpenRound round_;

  mutable SharedMutex mutex_;
  // Written under the mutex, by the thread of Apply alone, which therefore also
  // reads them without it.
  Clocks clocks_;
  DenseValues dense_ ABSL_GUARDED_BY(mutex_);
  // But for Prepare, with the mutex.
  const std::vector<std::unique_ptr<ShardTable>> tables_;
};

}  // namespace baton::dist
