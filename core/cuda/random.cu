// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cmath>

#include "core/cuda/access.cuh"
#include "core/cuda/convert.cuh"
#include "core/cuda/launch.h"
#include "core/cuda/random.h"
#include "core/philox.h"

namespace baton::cuda {
namespace {

constexpr int kThreads = 256;
using Words = std::array<uint32_t, 4>;

struct Source {
  explicit Source(const Generator::Draw& draw)
      : seed(draw.state.seed),
        number(draw.state.draws),
        ticket(draw.ticket.defined()
                   ? static_cast<const uint64_t*>(draw.ticket.raw_data())
                   : nullptr) {}

  __device__ __forceinline__ void Resolve() {
    if (ticket == nullptr) return;
    seed = ticket[0];
    number = ticket[1];
  }
  __device__ __forceinline__ Words Block(uint64_t block) const {
    return Philox({Low(block), High(block), Low(number), High(number)},
                  {Low(seed), High(seed)});
  }
  __device__ static uint32_t Low(uint64_t x) {
    return static_cast<uint32_t>(x);
  }
  __device__ static uint32_t High(uint64_t x) {
    return static_cast<uint32_t>(x >> 32);
  }

  uint64_t seed, number;
  const uint64_t* ticket;
};

// Returns a number in [0, 1) with 53 bits from two words.
__device__ __forceinline__ double Unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// The number of elements of T that a block of four words gives.
template <typename T>
inline constexpr int kPerBlock = std::is_same_v<T, double> ? 2 : 4;

template <typename T>
struct Uniform {
  __device__ Pack<T, kPerBlock<T>> operator()(const Words& w) const {
    if constexpr (std::is_same_v<T, double>) {
      return {{Scaled(Unit(w[0], w[1])), Scaled(Unit(w[2], w[3]))}};
    } else {
      return {{Scaled(w[0] * 0x1p-32), Scaled(w[1] * 0x1p-32),
               Scaled(w[2] * 0x1p-32), Scaled(w[3] * 0x1p-32)}};
    }
  }
  // Rounds after each operation, as the CPU does; rounding to T must not reach
  // `high`.
  __device__ T Scaled(double unit) const {
    const double value = __dadd_rn(low, __dmul_rn(range, unit));
    const T rounded = ConvertTo<T>(value);
    const bool below = static_cast<double>(rounded) < high || low == high;
    return below ? rounded : ConvertTo<T>(low);
  }
  double low, high, range;
};

// Box and Muller: two independent normals from two uniforms, u1 in (0, 1].
template <typename C>
struct Normals {
  __device__ Normals(C u1, C u2) {
    const C radius = sqrt(C(-2) * log(u1));
    C sine, cosine;
    sincospi(C(2) * u2, &sine, &cosine);
    first = radius * cosine;
    second = radius * sine;
  }
  C first, second;
};

template <typename T>
struct Normal {
  using C = Compute<T>;
  __device__ Pack<T, kPerBlock<T>> operator()(const Words& w) const {
    if constexpr (std::is_same_v<T, double>) {
      const Normals<C> n(1 - Unit(w[0], w[1]), Unit(w[2], w[3]));
      return {{Scaled(n.first), Scaled(n.second)}};
    } else {
      const Normals<C> a(1 - Single(w[0]), Single(w[1]));
      const Normals<C> b(1 - Single(w[2]), Single(w[3]));
      return {{Scaled(a.first), Scaled(a.second), Scaled(b.first),
               Scaled(b.second)}};
    }
  }
  __device__ static float Single(uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
  }
  __device__ T Scaled(C value) const { return As<T>(mean + stddev * value); }
  C mean, stddev;
};

// Compares words with `end`, which is p * 2^32 rounded up: the words below
// `end` are those below p * 2^32.
struct Bernoulli {
  explicit Bernoulli(double p)
      : end(static_cast<uint64_t>(std::ceil(p * 4294967296.0))) {}
  __device__ Pack<bool, 4> operator()(const Words& w) const {
    return {{w[0] < end, w[1] < end, w[2] < end, w[3] < end}};
  }
  uint64_t end;
};

template <typename T, typename Values>
__global__ void __launch_bounds__(kThreads)
    GenerateKernel(Source source, T* to, int64_t count, bool aligned,
                   Values values) {
  constexpr int kStep = kPerBlock<T>;
  source.Resolve();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t b = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       b * kStep < count; b += step) {
    StoreSome(to + b * kStep, count - b * kStep, aligned,
              values(source.Block(b)).at);
  }
}

template <typename T, typename Values>
void Generate(const char* op, const Tensor& out, const Generator::Draw& draw,
              Values values) {
  if (out.numel() == 0) return;
  const Launch launch(op, {&out}, {&draw.ticket});
  T* const to = static_cast<T*>(out.raw_data());
  const bool aligned = IsAligned(to, sizeof(T) * kPerBlock<T>);
  const int blocks = launch.Blocks(out.numel(), kThreads, kPerBlock<T>);
  GenerateKernel<<<blocks, kThreads, 0, launch.stream()>>>(
      Source(draw), to, out.numel(), aligned, values);
  launch.Check();
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    DropoutKernel(Source source, T* y, bool* mask, const T* x, int64_t count,
                  bool aligned, Bernoulli keep, Compute<T> scale) {
  using C = Compute<T>;
  source.Resolve();
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t b = int64_t{blockIdx.x} * kThreads + threadIdx.x; b * 4 < count;
       b += step) {
    const int64_t first = b * 4;
    const int64_t left = count - first;
    T values[4];
    LoadSome(x + first, left, aligned, values);
    const Pack<bool, 4> kept = keep(source.Block(b));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = As<T>(kept.at[i] ? As<C>(values[i]) * scale : C(0));
    }
    StoreSome(y + first, left, aligned, values);
    StoreSome(mask + first, left, aligned, kept.at);
  }
}

__global__ void SetTicketsKernel(uint64_t* tickets, uint64_t seed,
                                 uint64_t count) {
  tickets[0] = seed;
  tickets[1] = count;
}

// Graphs that share a generator may be replayed on two streams at once.
__global__ void TakeTicketKernel(uint64_t* ticket, uint64_t* tickets) {
  constexpr uint64_t kCaptured = uint64_t{1} << 63;
  ticket[0] = tickets[0];
  ticket[1] =
      kCaptured +
      atomicAdd(reinterpret_cast<unsigned long long*>(tickets + 1), 1ull);
}

uint64_t* Words64(const Tensor& x) {
  return static_cast<uint64_t*>(x.raw_data());
}

}  // namespace

void FillUniform(const Tensor& out, double low, double high,
                 const Generator::Draw& draw) {
  VisitDeviceFloating("uniform", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Generate<T>("uniform", out, draw, Uniform<T>{low, high, high - low});
  });
}

void FillNormal(const Tensor& out, double mean, double stddev,
                const Generator::Draw& draw) {
  VisitDeviceFloating("normal", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    Generate<T>("normal", out, draw,
                Normal<T>{static_cast<C>(mean), static_cast<C>(stddev)});
  });
}

void FillBernoulli(const Tensor& out, double p, const Generator::Draw& draw) {
  Generate<bool>("bernoulli", out, draw, Bernoulli(p));
}

void Dropout(const Tensor& y, const Tensor& mask, const Tensor& x, double keep,
             double scale, const Generator::Draw& draw) {
  const int64_t count = x.numel();
  if (count == 0) return;
  const Launch launch("dropout", {&y, &mask}, {&x, &draw.ticket});
  bool* const kept = static_cast<bool*>(mask.raw_data());
  const bool aligned =
      IsAligned(x.raw_data()) && IsAligned(y.raw_data()) && IsAligned(kept, 4);
  VisitDeviceFloating("dropout", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    DropoutKernel<<<launch.Blocks(count, kThreads, 4), kThreads, 0,
                    launch.stream()>>>(
        Source(draw), static_cast<T*>(y.raw_data()), kept,
        static_cast<const T*>(x.raw_data()), count, aligned, Bernoulli(keep),
        static_cast<Compute<T>>(scale));
  });
  launch.Check();
}

void SetTickets(const Tensor& tickets, uint64_t seed, uint64_t count) {
  const Launch launch("generator", {&tickets}, {});
  SetTicketsKernel<<<1, 1, 0, launch.stream()>>>(Words64(tickets), seed, count);
  launch.Check();
}

void TakeTicket(const Tensor& ticket, const Tensor& tickets) {
  const Launch launch("generator", {&ticket, &tickets}, {});
  TakeTicketKernel<<<1, 1, 0, launch.stream()>>>(Words64(ticket),
                                                 Words64(tickets));
  launch.Check();
}

}  // namespace baton::cuda
