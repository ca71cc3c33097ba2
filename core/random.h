// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>

#include "core/mutex.h"
#include "core/tensor.h"

namespace baton {

// Counter-based generator (Philox4x32-10: Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011): element i of a draw depends only on
// seed, draw and i, so results are equal for any number of threads.
// The numbers are the same on every device; normal ones up to rounding.
//
// A draw that is recorded in a graph (core/graph.h) gives new numbers at each
// replay. They come from a sequence of the generator that only replays use, and
// that each GPU counts for itself. The generator must have drawn on that GPU
// before, and must live as long as the graph.
//
// Thread-safe: concurrent draws take disjoint counters.
class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {}

  uint64_t seed() const;
  // Counts a draw and returns its number.
  uint64_t NextDraw() { return Advance().draws; }
  struct State {
    uint64_t seed = 0;
    uint64_t draws = 0;
  };
  State state() const;
  // The number of draws by replays so far, the highest of all GPUs. If a draw
  // was recorded, waits for the replays.
  uint64_t ReplayedDraws() const;
  // Returns the state before this draw and counts the draw, atomically.
  State Advance();
  // Does not change the sequence of replays, unless the seed changes: then it
  // begins anew.
  void set_state(const State& state);
  // Sets the number of replayed draws on every GPU.
  void SetReplayedDraws(uint64_t draws);

  // A GPU's kernels compute the next draw from `state`, the generator's before
  // the draw. If `ticket` (i64 [2]) is defined, they use the seed and the
  // number that it contains on the GPU when they run. DrawOn counts the draw.
  // It throws Error(FailedPrecondition) if the first draw on `device` is within
  // a recording.
  struct Draw {
    State state;
    Tensor ticket;
  };
  Draw DrawOn(Device device);

 private:
  void SetTicketsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the i64 [2] on `device`: seed and count of replayed draws.
  Tensor TicketsLocked(Device device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t seed_ ABSL_GUARDED_BY(mutex_);
  uint64_t draws_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Tensor> tickets_ ABSL_GUARDED_BY(mutex_);  // by GPU
  uint64_t replayed_draws_ ABSL_GUARDED_BY(mutex_) = 0;    // as last set
  bool recorded_ ABSL_GUARDED_BY(mutex_) = false;
};

// These fill floating tensors in place: with numbers uniform in [low, high), or
// normal ones with this mean and standard deviation.
void FillUniform(const Tensor& tensor, double low, double high,
                 Generator& generator);
void FillNormal(const Tensor& tensor, double mean, double stddev,
                Generator& generator);
Tensor RandUniform(const Shape& shape, double low, double high,
                   Generator& generator, DType dtype = DType::kF32);
Tensor RandNormal(const Shape& shape, Generator& generator,
                  DType dtype = DType::kF32);
// Returns i64 numbers, uniform in [low, high).
Tensor RandInt(int64_t low, int64_t high, const Shape& shape,
               Generator& generator);
// Returns a random permutation of 0..n-1, i64 [n].
Tensor RandPermutation(int64_t n, Generator& generator);
// Returns bools, each true with probability p.
Tensor RandBernoulli(const Shape& shape, double p, Generator& generator,
                     Device device = Device::Cpu());

}  // namespace baton
