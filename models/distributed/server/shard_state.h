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
#include "core/loop_thread.h"
#include "core/shared_mutex.h"
#include "core/stream.h"
#include "models/distributed/server/clocks.h"
#include "models/distributed/server/dense_stepper.h"
#include "models/distributed/server/options.h"
#include "models/distributed/server/shard_table.h"

namespace baton::dist {

// What a trainer pushes to one shard.
struct Gradients {
  // f32 or bf16 [elements of the shard]; undefined if only rows are pushed.
  Tensor dense{};
  Tensor index{};  // i64 [n]; if set, `dense` is f32 [n] and has only these
                   // elements
  std::vector<RowGradients> rows{};
  static constexpr auto Fields() {
    return std::tuple{&Gradients::dense, &Gradients::index, &Gradients::rows};
  }
};

// The rows of one push, prepared for the tables of this process.
using PreparedTables =
    std::vector<std::pair<size_t, std::unique_ptr<const PreparedRows>>>;
using PreparedPush = std::shared_ptr<const PreparedTables>;

// A change of a shard. The primary numbers the updates, and primary and backup
// apply them in that order.
struct ShardUpdate {
  enum class Kind : uint8_t {
    kJoin = 0,
    kLeave = 1,
    kPush = 2,
    kTouch = 3,
    kGiveUp = 4,  // a trainer that is expected from the worker of `joining`
    kStart = 5,   // the trainer counts from the clock of `joining` on
  };

  int64_t index = 0;
  Kind kind = Kind::kPush;
  TrainerId trainer{};
  // For kJoin; for kGiveUp only the worker, and for kStart only the clock.
  ServedTrainer joining{};
  int64_t sequence = 0;     // for kPush
  Gradients gradients{};    // for kPush; for kTouch only the keys
  PreparedPush prepared{};  // for kPush, if prepared; not sent
  static constexpr auto Fields() {
    using U = ShardUpdate;
    return std::tuple{&U::index,   &U::kind,     &U::trainer,
                      &U::joining, &U::sequence, &U::gradients};
  }
};

// The gradients of a round that is not complete, in the order of ranks.
using OpenRound = std::map<std::pair<int64_t, TrainerId>, Gradients>;

// The whole state of a shard, from which a replica of it is made. That of a new
// shard has only values.
struct ShardImage {
  int64_t version = 0;
  Tensor values;                // f32 [elements]
  std::vector<Tensor> slots{};  // the rule's state, laid out as the values
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

// A step in a folder of checkpoints, with the rows that a shard starts from.
struct SavedRows {
  std::string folder;
  int64_t step = 0;
  static constexpr auto Fields() {
    return std::tuple{&SavedRows::folder, &SavedRows::step};
  }
};

// What a replica of a shard is made from.
struct ShardSpec {
  ServerOptions options;
  int32_t shard = 0;
  int32_t shards = 1;
  std::vector<std::string> servers{};  // the names of all servers, in order
  std::vector<std::string> cores{};    // of each server (CoresHere)
  ShardImage image;
  std::optional<SavedRows> saved{};  // the source of the rows if the image has
                                     // none
  static constexpr auto Fields() {
    using S = ShardSpec;
    return std::tuple{&S::options, &S::shard, &S::shards, &S::servers,
                      &S::cores,   &S::image, &S::saved};
  }
};

// The id of a client that only reads: it does not join and never waits.
inline constexpr TrainerId kReader{0};

// A trainer's request to a shard: push, pull, or both in this order.
struct ExchangeRequest {
  TrainerId trainer{};
  int64_t sequence = 0;  // number of the trainer's push to this shard; 0 if
                         // nothing is pushed
  Gradients gradients{};
  bool values = false;  // pull all dense values of the shard
  std::vector<RowKeys> rows{};
  bool cut = false;  // tell which pushes the values have
  // For a pull: the number of the ServerShard::Hold that it ends, or 0, and
  // what the values are to have then.
  uint64_t hold = 0;
  Cut upto{};
  static constexpr auto Fields() {
    using R = ExchangeRequest;
    return std::tuple{&R::trainer, &R::sequence, &R::gradients, &R::values,
                      &R::rows,    &R::cut,      &R::hold,      &R::upto};
  }
};

struct ExchangeReply {
  int64_t epoch = 0;
  int64_t version = 0;  // number of updates of the shard at the time of the
                        // pull
  // The pushes counted for this trainer and for the slowest one at that time.
  int64_t clock = 0;
  int64_t slowest = 0;
  Tensor values{};             // f32 [elements], if requested
  std::vector<Tensor> rows{};  // f32 [N, width] for each requested table
  Cut cut{};                   // the pushes in all these, if requested
  static constexpr auto Fields() {
    using R = ExchangeReply;
    return std::tuple{&R::epoch,  &R::version, &R::clock, &R::slowest,
                      &R::values, &R::rows,    &R::cut};
  }
};

// The state of a shard and how updates change it. The same updates in the same
// order give the same bits, at a primary and at its backup. Only one thread at
// a time may call Apply, clocks and Image; all other methods are thread-safe
// and may read concurrently between two updates.
class ShardState {
 public:
  ShardState(const ShardSpec& spec, Device device);

  Device device() const { return device_; }
  const ServerOptions& options() const { return options_; }
  const Clocks& clocks() const { return clocks_; }
  // The number of servers that may use the cores of this one.
  int servers_here() const { return servers_here_; }

  // Returns InvalidArgument for gradients that do not fit.
  absl::Status Check(const Gradients& gradients) const;
  // Does the part of applying checked gradients that may run concurrently with
  // other updates. Returns null if there is nothing to prepare.
  PreparedPush Prepare(const Gradients& gradients) const;
  // Applies a checked update that Clocks::MayGo allows.
  void Apply(const ShardUpdate& update);
  // For asynchronous mode: applies pushes of different trainers one after the
  // other, in one pass over the values, with their rows distributed over
  // several threads. Readers see all of the pushes or none.
  void ApplyPushes(const std::vector<ShardUpdate>& pushes);

  // Returns a copy; call it between two updates.
  ShardImage Image() const;

  // Whether the trainer has joined, or only reads, and need not wait for
  // others.
  bool MayPull(TrainerId trainer) const;
  // Returns what a checked request pulls, without the epoch. `empty` makes the
  // tensors for rows, on the device of their table.
  using Empty =
      std::function<Tensor(const Shape& shape, const TensorOptions& options)>;
  ExchangeReply Read(const ExchangeRequest& request, const Empty& empty) const;
  int64_t version() const;
  bool IsBounded(int32_t table) const;

 private:
  struct DenseValues {
    int64_t version = 0;
    Tensor values;  // immutable once published
  };

  // The gradients of one step: it uses the sum of the dense gradients, and that
  // of the rows' gradients, each added in order.
  struct StepWork {
    std::vector<Tensor> dense;
    PreparedPush rows;
  };

  absl::Status CheckDense(const Gradients& gradients) const;
  void TakeIntoRound(const ShardUpdate& push);
  void ApplyTouch(const Gradients& used);
  // Returns the work of a step with the sum of these gradients; `rows`, if set,
  // are its prepared rows.
  StepWork WorkOf(const std::vector<Gradients>& summed,
                  PreparedPush rows = nullptr) const;
  PreparedPush PrepareRows(const std::vector<Gradients>& summed) const;
  // Executes the steps in order; gradients are multiplied by `scale`. `count`
  // tells the clocks of it: readers see both or neither.
  void StepBy(const std::vector<StepWork>& steps, double scale,
              const std::function<void()>& count);
  Tensor values() const;

  const ServerOptions options_;
  const int32_t shards_;
  const int servers_here_;
  const Device device_;
  // Rows are read on one stream, whichever thread does it: the allocator reuses
  // memory for requests of the same stream, and memory that is new to another
  // process's GPU goes through the host until it is open there.
  const Stream reads_;
  const Shape shape_;     // of the dense values
  DenseStepper stepper_;  // of the dense values
  OpenRound round_;

  LoopThread loops_{"baton-shard"};  // steps
  mutable SharedMutex mutex_;
  // Only the thread of Apply writes these, under the mutex; hence it may read
  // them without the mutex.
  Clocks clocks_;
  DenseValues dense_ ABSL_GUARDED_BY(mutex_);
  // Except for Prepare, used under the mutex.
  const std::vector<std::unique_ptr<ShardTable>> tables_;
};

}  // namespace baton::dist
