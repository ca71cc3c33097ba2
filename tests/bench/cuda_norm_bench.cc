// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Batch norm and pooling on a GPU at ResNet50's shapes. One line for each shape
// and op: microseconds with inputs that the L2 cache may hold (warm) and with
// inputs that it cannot (cold), the bytes that the kernels read and write, and
// what that is of the rate of a device copy measured in the same run. Runs as
// recorded graphs, so that launches on the CPU do not count.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "core/cuda/batch_norm_plan.h"
#include "core/cuda/memory.h"
#include "core/graph.h"
#include "core/ops/norm.h"
#include "core/ops/pool.h"
#include "core/stream.h"

ABSL_FLAG(std::vector<std::string>, batches,
          std::vector<std::string>({"120", "12"}), "images a (micro-)batch");
ABSL_FLAG(int, image, 128, "height and width of the images");
ABSL_FLAG(std::vector<std::string>, dtypes,
          std::vector<std::string>({"f32", "bf16"}), "of activations");
ABSL_FLAG(int, repeat, 9, "timed replays; the median counts");

namespace baton {
namespace {

constexpr int kCallsAGraph = 24;
constexpr size_t kColdBytes = size_t{400} << 20;  // far above any L2 cache
constexpr int kBlocks = 128;                      // OwnerGrid's, on an H200

Device Gpu() { return Device::Cuda(0); }

// Median microseconds of call(i) for i = 0, 1, ...
double Microseconds(const std::function<void(int)>& call) {
  call(0);
  const Graph graph = Graph::Record({Gpu()}, [&] {
    for (int i = 0; i < kCallsAGraph; ++i) call(i);
  });
  graph.Replay();
  const Stream stream = CurrentStream(Gpu());
  std::vector<double> times;
  for (int i = 0; i < absl::GetFlag(FLAGS_repeat); ++i) {
    Event start(Gpu()), end(Gpu());
    start.Record(stream);
    graph.Replay();
    end.Record(stream);
    end.Synchronize();
    times.push_back(end.MillisecondsSince(start) * 1e3 / kCallsAGraph);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Bytes a second of a copy, read and written.
double CopyRate() {
  const Tensor from = Tensor::Zeros({1 << 28}, {.device = Gpu()});
  const Tensor to = Tensor::EmptyLike(from);
  const double us = Microseconds([&](int) { to.CopyFrom(from); });
  return 2.0 * static_cast<double>(from.nbytes()) / us * 1e6;
}

// The same call over one set of inputs and over sets too large for the cache.
struct Measured {
  double warm, cold;
};
template <typename MakeInputs, typename Call>
Measured Measure(size_t bytes, MakeInputs make, Call call) {
  using Inputs = decltype(make());
  const size_t sets = std::clamp<size_t>(
      kColdBytes / std::max(bytes, size_t{1}), 2, kCallsAGraph);
  std::vector<Inputs> inputs;
  for (size_t i = 0; i < sets; ++i) inputs.push_back(make());
  return {Microseconds([&](int) { call(inputs[0]); }), Microseconds([&](int i) {
            call(inputs[static_cast<size_t>(i) % sets]);
          })};
}

void Print(const std::string& what, const Shape& shape, DType dtype,
           const Measured& measured, double bytes, double copy_rate) {
  const auto rate = [&](double us) { return bytes / us * 1e6; };
  std::printf(
      "%-22s %-20s %-5s %9.2f %9.2f %9.1f %8.0f %8.0f %6.0f%% %6.0f%%\n",
      what.c_str(), shape.ToString().c_str(), Name(dtype), measured.warm,
      measured.cold, bytes / 1e6, rate(measured.warm) / 1e9,
      rate(measured.cold) / 1e9, 100 * rate(measured.warm) / copy_rate,
      100 * rate(measured.cold) / copy_rate);
  std::fflush(stdout);
}

Tensor Filled(const Shape& shape, DType dtype) {
  // Not constant: the last axis counts.
  const Tensor row = Tensor::Arange(shape[-1], DType::kF32).To(dtype).To(Gpu());
  const Tensor x = Tensor::Empty(
      shape,
      {.dtype = dtype, .device = Gpu(), .format = MemoryFormat::kChannelsLast});
  x.CopyFrom(row);
  return x;
}

struct NormInputs {
  Tensor x, dy, residual, gamma, beta, mean, variance;
  ops::BatchNormResult forward;
};

NormInputs MakeNormInputs(const Shape& shape, DType dtype, bool residual) {
  NormInputs in;
  in.x = Filled(shape, dtype);
  in.dy = Filled(shape, dtype);
  if (residual) in.residual = Filled(shape, dtype);
  const TensorOptions options = {.device = Gpu()};
  in.gamma = Tensor::Ones({shape[1]}, options);
  in.beta = Tensor::Zeros({shape[1]}, options);
  in.mean = Tensor::Zeros({shape[1]}, options);
  in.variance = Tensor::Ones({shape[1]}, options);
  in.forward = ops::BatchNormTrain(in.x, in.gamma, in.beta, in.residual,
                                   in.mean, in.variance, {.relu = true});
  return in;
}

void BenchNorm(const Shape& shape, DType dtype, bool residual,
               double copy_rate) {
  const auto make = [&] { return MakeNormInputs(shape, dtype, residual); };
  const size_t bytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  const cuda::NormView view("batch_norm", Filled(shape, dtype), {});
  const auto moved = [&](int tensors, double one, double two) {
    const bool once = cuda::OwnerGrid(view, kBlocks, tensors).has_value();
    return static_cast<double>(bytes) * (once ? one : two);
  };
  const std::string kind = residual ? "+residual+relu" : "+relu";
  Print("norm" + kind, shape, dtype,
        Measure(bytes * 4, make,
                [](const NormInputs& in) {
                  ops::BatchNormTrain(in.x, in.gamma, in.beta, in.residual,
                                      in.mean, in.variance, {.relu = true});
                }),
        residual ? moved(1, 3, 4) : moved(1, 2, 3), copy_rate);
  Print("norm" + kind + " bwd", shape, dtype,
        Measure(bytes * 4, make,
                [&](const NormInputs& in) {
                  ops::BatchNormBackward(in.dy, in.x, in.gamma, in.forward,
                                         residual, {.relu = true});
                }),
        residual ? moved(2, 5, 7) : moved(2, 3, 5), copy_rate);
}

void BenchPool(int64_t batch, int64_t side, DType dtype, double copy_rate) {
  const ops::Pool2dOptions options = {
      .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const Shape shape = {batch, 64, side / 2, side / 2};
  struct Inputs {
    Tensor x, y, dy, workspace;
  };
  const auto make = [&](const Shape& s, bool max) {
    Inputs in;
    in.x = Filled(s, dtype);
    if (max) {
      const ops::MaxPool2dResult result = ops::MaxPool2d(in.x, options);
      in.y = result.y;
      in.workspace = result.workspace;
    } else {
      in.y = ops::AdaptiveAvgPool2d(in.x, 1, 1);
    }
    in.dy = in.y.Clone();
    return in;
  };
  const size_t x_bytes = static_cast<size_t>(shape.numel()) * SizeOf(dtype);
  const Inputs one = make(shape, true);
  const double max_bytes =
      static_cast<double>(x_bytes + one.y.nbytes() + one.workspace.nbytes());
  const auto make_max = [&] { return make(shape, true); };
  Print("max_pool", shape, dtype,
        Measure(x_bytes, make_max,
                [&](const Inputs& in) { ops::MaxPool2d(in.x, options); }),
        max_bytes, copy_rate);
  Print("max_pool bwd", shape, dtype,
        Measure(x_bytes, make_max,
                [&](const Inputs& in) {
                  ops::MaxPool2dBackward(in.dy, in.workspace, shape, options);
                }),
        max_bytes, copy_rate);
  const Shape last = {batch, 2048, side / 32, side / 32};
  const auto make_mean = [&] { return make(last, false); };
  const size_t last_bytes = static_cast<size_t>(last.numel()) * SizeOf(dtype);
  const auto mean_bytes = static_cast<double>(
      last_bytes + static_cast<size_t>(batch * 2048) * SizeOf(dtype));
  Print("global mean", last, dtype,
        Measure(last_bytes, make_mean,
                [](const Inputs& in) { ops::AdaptiveAvgPool2d(in.x, 1, 1); }),
        mean_bytes, copy_rate);
  Print("global mean bwd", last, dtype,
        Measure(last_bytes, make_mean,
                [](const Inputs& in) {
                  ops::AdaptiveAvgPool2dBackward(in.dy, in.x);
                }),
        mean_bytes, copy_rate);
}

struct Layer {
  int64_t channels, part;  // of the image's side
  bool residual;
};

// ResNet50's batch norms; those before an addition also with a residual.
constexpr Layer kLayers[] = {
    {64, 2, false},   {64, 4, false},   {256, 4, true},   {128, 4, false},
    {128, 8, false},  {512, 8, true},   {256, 8, false},  {256, 16, false},
    {1024, 16, true}, {512, 16, false}, {512, 32, false}, {2048, 32, true},
};

void Run(int64_t batch, DType dtype, double copy_rate) {
  const int64_t side = absl::GetFlag(FLAGS_image);
  for (const Layer& layer : kLayers) {
    const Shape shape = {batch, layer.channels, side / layer.part,
                         side / layer.part};
    BenchNorm(shape, dtype, false, copy_rate);
    if (layer.residual) BenchNorm(shape, dtype, true, copy_rate);
  }
  BenchPool(batch, side, dtype, copy_rate);
}

int Main() {
  if (cuda::DeviceCount() == 0) {
    std::fprintf(stderr, "cuda_norm_bench: no GPU here\n");
    return 1;
  }
  const double copy_rate = CopyRate();
  std::printf("copy: %.0f GB/s, read and written\n", copy_rate / 1e9);
  std::printf("%-22s %-20s %-5s %9s %9s %9s %8s %8s %7s %7s\n", "op", "x",
              "dtype", "warm us", "cold us", "MB", "GB/s", "GB/s cold", "warm",
              "cold");
  for (const std::string& batch : absl::GetFlag(FLAGS_batches)) {
    for (const std::string& name : absl::GetFlag(FLAGS_dtypes)) {
      Run(std::stoll(batch), name == "bf16" ? DType::kBF16 : DType::kF32,
          copy_rate);
    }
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return baton::Main();
}
