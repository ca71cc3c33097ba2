// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// The convolutions of ResNet50 on 224x224 images, each kind once, on a device:
// one JSON line for each pass, with cuDNN's first suggestion, with what a
// search finds, and how long the search took. `count` is how often the model
// has it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "core/conv_tuning.h"
#include "core/ops/conv.h"
#include "core/precision.h"
#include "core/random.h"
#include "core/stream.h"

ABSL_FLAG(std::string, device, "cuda", "cpu, cuda or cuda:N");
ABSL_FLAG(std::string, dtype, "bf16", "f32, f16 or bf16");
ABSL_FLAG(bool, tf32, true, "round f32 operands to TF32");
ABSL_FLAG(std::string, format, "channels_last", "channels_last or contiguous");
ABSL_FLAG(int, batch, 64, "images");
ABSL_FLAG(int, runs, 20, "runs of each, of which the median counts");

namespace baton {
namespace {

struct Kind {
  int count;
  int64_t in, size, out, kernel, stride;
};

// The 53 convolutions, by stage; the strided ones are the 3x3s and the
// shortcuts.
constexpr Kind kKinds[] = {{1, 3, 224, 64, 7, 2},     {1, 64, 56, 64, 1, 1},
                           {3, 64, 56, 64, 3, 1},     {4, 64, 56, 256, 1, 1},
                           {2, 256, 56, 64, 1, 1},    {1, 256, 56, 128, 1, 1},
                           {1, 128, 56, 128, 3, 2},   {4, 128, 28, 512, 1, 1},
                           {1, 256, 56, 512, 1, 2},   {3, 512, 28, 128, 1, 1},
                           {3, 128, 28, 128, 3, 1},   {1, 512, 28, 256, 1, 1},
                           {1, 256, 28, 256, 3, 2},   {6, 256, 14, 1024, 1, 1},
                           {1, 512, 28, 1024, 1, 2},  {5, 1024, 14, 256, 1, 1},
                           {5, 256, 14, 256, 3, 1},   {1, 1024, 14, 512, 1, 1},
                           {1, 512, 14, 512, 3, 2},   {3, 512, 7, 2048, 1, 1},
                           {1, 1024, 14, 2048, 1, 2}, {2, 2048, 7, 512, 1, 1},
                           {2, 512, 7, 512, 3, 1}};

double Milliseconds(Device device, const std::function<void()>& call) {
  const Stream stream = CurrentStream(device);
  Event begin(device), end(device);
  begin.Record(stream);
  call();
  end.Record(stream);
  end.Synchronize();
  return end.MillisecondsSince(begin);
}

double MedianOf(Device device, const std::function<void()>& call) {
  call();
  std::vector<double> times(static_cast<size_t>(absl::GetFlag(FLAGS_runs)));
  for (double& time : times) time = Milliseconds(device, call);
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

void Measure(const Kind& kind, const char* pass, double flops, Device device,
             const std::function<void()>& call) {
  SetConvSearch(false);
  const double suggested = MedianOf(device, call);
  SetConvSearch(true);
  const auto begin = std::chrono::steady_clock::now();
  call();
  Synchronize(device);
  const std::chrono::duration<double> search =
      std::chrono::steady_clock::now() - begin;
  const double found = MedianOf(device, call);
  std::printf(
      "{\"pass\": \"%s\", \"in\": %d, \"size\": %d, \"out\": %d, \"kernel\": "
      "%d, \"stride\": %d, \"count\": %d, \"suggested_ms\": %.4f, "
      "\"found_ms\": %.4f, \"tflops\": %.1f, \"search_s\": %.2f}\n",
      pass, static_cast<int>(kind.in), static_cast<int>(kind.size),
      static_cast<int>(kind.out), static_cast<int>(kind.kernel),
      static_cast<int>(kind.stride), kind.count, suggested, found,
      flops / found / 1e9, search.count());
  std::fflush(stdout);
}

void Run(const Kind& kind, Device device, DType dtype, MemoryFormat format) {
  Generator generator(1);
  const auto make = [&](const Shape& shape) {
    return RandNormal(shape, generator).To(device).To(dtype).Contiguous(format);
  };
  const int64_t batch = absl::GetFlag(FLAGS_batch), pad = kind.kernel / 2;
  const ops::Conv2dOptions options = {.stride = {kind.stride, kind.stride},
                                      .padding = {pad, pad}};
  const Tensor x = make({batch, kind.in, kind.size, kind.size});
  const Tensor w = make({kind.out, kind.in, kind.kernel, kind.kernel});
  const Tensor dy = ops::Conv2d(x, w, Tensor(), options);
  const double flops = 2.0 * static_cast<double>(dy.numel() * kind.in) *
                       static_cast<double>(kind.kernel * kind.kernel);
  Measure(kind, "forward", flops, device,
          [&] { ops::Conv2d(x, w, Tensor(), options); });
  if (kind.in > 3) {
    Measure(kind, "backward_input", flops, device,
            [&] { ops::Conv2dBackwardInput(dy, w, x.shape(), options); });
  }
  Measure(kind, "backward_weight", flops, device, [&] {
    ops::Conv2dBackwardWeight(dy, x, w.shape(), options, w.SuggestFormat());
  });
}

int Main() {
  const auto device = Device::Parse(absl::GetFlag(FLAGS_device));
  const auto dtype = DTypeFromName(absl::GetFlag(FLAGS_dtype));
  if (!device.ok() || !dtype) {
    std::fprintf(stderr, "--device or --dtype is not known\n");
    return 2;
  }
  AllowTf32(absl::GetFlag(FLAGS_tf32));
  for (const Kind& kind : kKinds) {
    Run(kind, *device, *dtype,
        absl::GetFlag(FLAGS_format) == "contiguous"
            ? MemoryFormat::kContiguous
            : MemoryFormat::kChannelsLast);
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return baton::Main();
}
