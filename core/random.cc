// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/cuda/random.h"
#include "core/dtype_visit.h"
#include "core/graph.h"
#include "core/ops/checks.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace baton {
namespace {

constexpr int64_t kGrain = 4096;  // blocks of four words
constexpr double kTwoTo32 = 4294967296.0;

using Words = std::array<uint32_t, 4>;

// The random words of one draw, by block.
class NumberStream {
 public:
  explicit NumberStream(Generator& generator)
      : NumberStream(generator.Advance()) {}

  Words Block(int64_t block) const {
    const auto b = static_cast<uint64_t>(block);
    return Philox({Low(b), High(b), Low(draw_), High(draw_)},
                  {Low(seed_), High(seed_)});
  }

 private:
  explicit NumberStream(const Generator::State& state)
      : seed_(state.seed), draw_(state.draws) {}
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  const uint64_t seed_;
  const uint64_t draw_;
};

uint64_t Join(uint32_t high, uint32_t low) {
  return (uint64_t{high} << 32) | low;
}

// Returns a value in [0, 1) with 53 bits from two words.
double Unit64(uint32_t high, uint32_t low) {
  return static_cast<double>(Join(high, low) >> 11) * 0x1p-53;
}

// Fills `to` with values(words of a block), kPerBlock elements for each block.
template <size_t kPerBlock, typename T, typename Values>
void Generate(const NumberStream& stream, T* to, int64_t count, Values values) {
  constexpr auto kStep = static_cast<int64_t>(kPerBlock);
  const int64_t blocks = (count + kStep - 1) / kStep;
  ParallelFor(blocks, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const std::array<T, kPerBlock> block = values(stream.Block(b));
      const int64_t first = b * kStep;
      for (int64_t i = 0; i < std::min(kStep, count - first); ++i) {
        to[first + i] = block[static_cast<size_t>(i)];
      }
    }
  });
}

// Calls fill(dense tensor) and copies the result to `target` if that is not
// dense: an element's number is its row-major index in any memory order.
template <typename Fill>
void FillDense(const char* op, const Tensor& target, Fill fill) {
  ops::RequireOneDevice(op, target);
  ops::RequireFloating(op, target);
  ops::RequireWritable(op, target);
  if (target.IsContiguous()) {
    target.PrepareWrite();
    fill(target);
    target.BumpVersion();
    return;
  }
  const Tensor dense = Tensor::Empty(
      target.shape(), {.dtype = target.dtype(), .device = target.device()});
  fill(dense);
  target.CopyFrom(dense);
}

// Rounding to T must not reach `high`.
template <typename T>
T Below(double value, double low, double high) {
  const T rounded = Convert<T>(value);
  return Convert<double>(rounded) < high || low == high ? rounded
                                                        : Convert<T>(low);
}

// Box and Muller: two independent normals from two uniforms, u1 in (0, 1].
template <typename C>
std::array<C, 2> Normals(C u1, C u2) {
  const C radius = std::sqrt(C(-2) * std::log(u1));
  const C angle = C(2) * std::numbers::pi_v<C> * u2;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::array<double, 2> NormalPair(const Words& w) {
  return Normals(1 - Unit64(w[0], w[1]), Unit64(w[2], w[3]));
}

std::array<float, 4> NormalQuad(const Words& w) {
  const auto unit = [](uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
  };
  const auto a = Normals(1 - unit(w[0]), unit(w[1]));
  const auto b = Normals(1 - unit(w[2]), unit(w[3]));
  return {a[0], a[1], b[0], b[1]};
}

}  // namespace

uint64_t Generator::seed() const {
  MutexLock lock(mutex_);
  return seed_;
}

Generator::State Generator::Advance() {
  MutexLock lock(mutex_);
  return {.seed = seed_, .draws = draws_++};
}

Generator::State Generator::state() const {
  MutexLock lock(mutex_);
  return {.seed = seed_, .draws = draws_};
}

uint64_t Generator::ReplayedDraws() const {
  std::vector<Tensor> counted;
  uint64_t most = 0;
  {
    MutexLock lock(mutex_);
    most = replayed_draws_;
    if (recorded_) {
      for (const auto& [device, tickets] : tickets_) counted.push_back(tickets);
    }
  }
  for (const Tensor& tickets : counted) {
    const auto count =
        std::bit_cast<uint64_t>(tickets.ToVector<int64_t>().back());
    most = std::max(most, count);
  }
  return most;
}

void Generator::set_state(const State& state) {
  MutexLock lock(mutex_);
  draws_ = state.draws;
  if (state.seed == seed_) return;
  seed_ = state.seed;
  replayed_draws_ = 0;
  SetTicketsLocked();
}

void Generator::SetReplayedDraws(uint64_t draws) {
  MutexLock lock(mutex_);
  replayed_draws_ = draws;
  SetTicketsLocked();
}

void Generator::SetTicketsLocked() {
  for (const auto& [device, tickets] : tickets_)
    cuda::SetTickets(tickets, seed_, replayed_draws_);
}

Tensor Generator::TicketsLocked(Device device) {
  const auto known = tickets_.find(device.index());
  if (known != tickets_.end()) return known->second;
  if (Graph::IsRecording()) {
    Fail("generator",
         absl::StrCat("the first draw on ", device.ToString(),
                      " is within a recording: run the same work once before"),
         absl::StatusCode::kFailedPrecondition);
  }
  Tensor tickets = Tensor::Empty({2}, {.dtype = DType::kI64, .device = device});
  cuda::SetTickets(tickets, seed_, replayed_draws_);
  tickets_[device.index()] = tickets;
  return tickets;
}

Generator::Draw Generator::DrawOn(Device device) {
  MutexLock lock(mutex_);
  const Tensor tickets = TicketsLocked(device);
  Draw draw{.state = {.seed = seed_, .draws = draws_++}, .ticket = Tensor()};
  if (Graph::IsRecording()) {
    recorded_ = true;
    draw.ticket = Tensor::EmptyLike(tickets);
    cuda::TakeTicket(draw.ticket, tickets);
  }
  return draw;
}

void FillUniform(const Tensor& tensor, double low, double high,
                 Generator& generator) {
  Require(low <= high, "uniform", "low ", low, " is above high ", high);
  FillDense("uniform", tensor, [&](const Tensor& dense) {
    if (dense.device().is_cuda()) {
      return cuda::FillUniform(dense, low, high,
                               generator.DrawOn(dense.device()));
    }
    const NumberStream stream(generator);
    VisitFloating("uniform", dense.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      const auto scaled = [=](double unit) {
        return Below<T>(low + (high - low) * unit, low, high);
      };
      if constexpr (std::is_same_v<T, double>) {
        Generate<2>(stream, dense.data<T>(), dense.numel(), [&](Words w) {
          return std::array<T, 2>{scaled(Unit64(w[0], w[1])),
                                  scaled(Unit64(w[2], w[3]))};
        });
      } else {
        Generate<4>(stream, dense.data<T>(), dense.numel(), [&](Words w) {
          return std::array<T, 4>{
              scaled(w[0] / kTwoTo32), scaled(w[1] / kTwoTo32),
              scaled(w[2] / kTwoTo32), scaled(w[3] / kTwoTo32)};
        });
      }
    });
  });
}

void FillNormal(const Tensor& tensor, double mean, double stddev,
                Generator& generator) {
  Require(stddev >= 0, "normal", "stddev ", stddev, " is negative");
  FillDense("normal", tensor, [&](const Tensor& dense) {
    if (dense.device().is_cuda()) {
      return cuda::FillNormal(dense, mean, stddev,
                              generator.DrawOn(dense.device()));
    }
    const NumberStream stream(generator);
    VisitFloating("normal", dense.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      using C = ComputeType<T>;
      const auto m = static_cast<C>(mean);
      const auto s = static_cast<C>(stddev);
      if constexpr (std::is_same_v<T, double>) {
        Generate<2>(stream, dense.data<T>(), dense.numel(), [&](Words w) {
          const auto n = NormalPair(w);
          return std::array<T, 2>{m + s * n[0], m + s * n[1]};
        });
      } else {
        Generate<4>(stream, dense.data<T>(), dense.numel(), [&](Words w) {
          const auto n = NormalQuad(w);
          return std::array<T, 4>{
              Convert<T>(m + s * n[0]), Convert<T>(m + s * n[1]),
              Convert<T>(m + s * n[2]), Convert<T>(m + s * n[3])};
        });
      }
    });
  });
}

Tensor RandUniform(const Shape& shape, double low, double high,
                   Generator& generator, DType dtype) {
  Tensor out = Tensor::Empty(shape, {.dtype = dtype});
  FillUniform(out, low, high, generator);
  return out;
}

Tensor RandNormal(const Shape& shape, Generator& generator, DType dtype) {
  Tensor out = Tensor::Empty(shape, {.dtype = dtype});
  FillNormal(out, 0, 1, generator);
  return out;
}

Tensor RandInt(int64_t low, int64_t high, const Shape& shape,
               Generator& generator) {
  Require(low < high, "rand_int", "[", low, ", ", high, ") is empty");
  Tensor out = Tensor::Empty(shape, {.dtype = DType::kI64});
  const uint64_t range =
      static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const auto scaled = [&](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(word) * range;
    return static_cast<int64_t>(static_cast<uint64_t>(low) +
                                static_cast<uint64_t>(product >> 64));
  };
  const NumberStream stream(generator);
  Generate<2>(stream, out.data<int64_t>(), out.numel(), [&](Words w) {
    return std::array<int64_t, 2>{scaled(Join(w[0], w[1])),
                                  scaled(Join(w[2], w[3]))};
  });
  return out;
}

Tensor RandPermutation(int64_t n, Generator& generator) {
  Require(n >= 0, "rand_permutation", "negative size ", n);
  Tensor out = Tensor::Arange(n);
  int64_t* order = out.data<int64_t>();
  const NumberStream stream(generator);
  for (int64_t i = n - 1; i > 0; --i) {
    const Words w = stream.Block(i);
    const auto product = static_cast<unsigned __int128>(Join(w[0], w[1])) *
                         static_cast<uint64_t>(i + 1);
    std::swap(order[i], order[static_cast<int64_t>(product >> 64)]);
  }
  return out;
}

Tensor RandBernoulli(const Shape& shape, double p, Generator& generator,
                     Device device) {
  Require(p >= 0 && p <= 1, "bernoulli", "probability ", p,
          " is outside [0, 1]");
  Tensor out = Tensor::Empty(shape, {.dtype = DType::kBool, .device = device});
  if (device.is_cuda()) {
    cuda::FillBernoulli(out, p, generator.DrawOn(device));
    return out;
  }
  const NumberStream stream(generator);
  Generate<4>(stream, out.data<bool>(), out.numel(), [p](Words w) {
    return std::array<bool, 4>{w[0] / kTwoTo32 < p, w[1] / kTwoTo32 < p,
                               w[2] / kTwoTo32 < p, w[3] / kTwoTo32 < p};
  });
  return out;
}

}  // namespace baton
