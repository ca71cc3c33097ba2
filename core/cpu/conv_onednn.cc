// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <unordered_map>
#include <vector>

#include "core/cpu/conv.h"
#include "core/cpu/onednn.h"
#include "core/cpu/packed_weights.h"
#include "core/lru_cache.h"
#include "core/parallel.h"

namespace baton::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Arguments = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

enum class Pass : int64_t { kForward, kBackwardInput, kBackwardWeight };

// Everything that decides how a convolution runs. Activations and weights have
// one of the two formats. oneDNN chooses an order of its own for weights, and
// activations keep theirs: blocked orders are no faster on ResNet50's shapes.
struct Problem {
  Pass pass;
  std::array<int64_t, 4> x;       // [N, C, H, W]
  std::array<int64_t, 4> weight;  // [O, C/groups, kH, kW]
  std::array<int64_t, 4> y;       // [N, O, oH, oW]
  std::array<int64_t, 7> options;
  int64_t channels_last;
  int64_t weight_channels_last;
  int64_t bias;
  int64_t threads;
  friend auto operator<=>(const Problem&, const Problem&) = default;
};

// A primitive that is ready to run, with the memory orders that it requires.
// `reorder` converts weights from the user's order (for the gradient of
// weights, to it); it is empty if the two orders are equal.
struct Plan {
  memory::desc x, weight, bias, y, user_weight, scratchpad;
  dnnl::primitive primitive;
  dnnl::primitive reorder;
  uint64_t layout = 0;
};

std::array<int64_t, 4> Dims4(const Shape& shape) {
  return {shape[0], shape[1], shape[2], shape[3]};
}

std::array<int64_t, 4> OutputDims(const Shape& x, const Shape& weight,
                                  const ops::Conv2dOptions& options) {
  std::array<int64_t, 4> y = {x[0], weight[0], 0, 0};
  for (size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t reach = options.dilation[i] * (weight[axis] - 1) + 1;
    y[i + 2] =
        (x[axis] + 2 * options.padding[i] - reach) / options.stride[i] + 1;
  }
  return y;
}

Problem MakeProblem(Pass pass, const Shape& x, const Shape& weight,
                    const ops::Conv2dOptions& options, MemoryFormat format) {
  return {.pass = pass,
          .x = Dims4(x),
          .weight = Dims4(weight),
          .y = OutputDims(x, weight, options),
          .options = {options.stride[0], options.stride[1], options.padding[0],
                      options.padding[1], options.dilation[0],
                      options.dilation[1], options.groups},
          .channels_last = format == MemoryFormat::kChannelsLast,
          .weight_channels_last = 0,
          .bias = 0,
          .threads = ComputeThreads()};
}

memory::desc Activation(const std::array<int64_t, 4>& dims,
                        const Problem& problem) {
  return memory::desc({dims[0], dims[1], dims[2], dims[3]}, kF32,
                      problem.channels_last ? Tag::nhwc : Tag::nchw);
}

memory::desc Weight(const Problem& problem, bool any) {
  const auto& w = problem.weight;
  const int64_t groups = problem.options[6];
  const bool last = problem.weight_channels_last;
  if (groups == 1) {
    return memory::desc({w[0], w[1], w[2], w[3]}, kF32,
                        any    ? Tag::any
                        : last ? Tag::ohwi
                               : Tag::oihw);
  }
  return memory::desc({groups, w[0] / groups, w[1], w[2], w[3]}, kF32,
                      any    ? Tag::any
                      : last ? Tag::gohwi
                             : Tag::goihw);
}

// Returns a number for each order of weights, so that primitives that require
// the same order share packed weights.
uint64_t LayoutNumber(const memory::desc& desc) {
  struct Known {
    Mutex mutex;
    std::vector<memory::desc> layouts ABSL_GUARDED_BY(mutex);
  };
  static auto* known = new Known;
  MutexLock lock(known->mutex);
  for (size_t i = 0; i < known->layouts.size(); ++i) {
    if (known->layouts[i] == desc) return i;
  }
  known->layouts.push_back(desc);
  return known->layouts.size() - 1;
}

struct Window {
  memory::dims stride, dilation, padding;
};

Window WindowOf(const Problem& problem) {
  const auto& o = problem.options;
  // oneDNN counts the zeros between taps, not the distance of taps.
  return {{o[0], o[1]}, {o[4] - 1, o[5] - 1}, {o[2], o[3]}};
}

dnnl::convolution_forward::primitive_desc ForwardDesc(
    const Problem& problem, const dnnl::primitive_attr& attributes) {
  const Window window = WindowOf(problem);
  const memory::desc x = Activation(problem.x, problem);
  const memory::desc weight = Weight(problem, true);
  const memory::desc y = Activation(problem.y, problem);
  const memory::desc bias =
      problem.bias ? memory::desc({problem.weight[0]}, kF32, Tag::x)
                   : memory::desc();
#if DNNL_VERSION_MAJOR < 3
  return {{dnnl::prop_kind::forward_training, kDirect, x, weight, bias, y,
           window.stride, window.dilation, window.padding, window.padding},
          attributes,
          OneDnnEngine()};
#else
  return {OneDnnEngine(),
          dnnl::prop_kind::forward_training,
          kDirect,
          x,
          weight,
          bias,
          y,
          window.stride,
          window.dilation,
          window.padding,
          window.padding,
          attributes};
#endif
}

// Describes the gradient of x or of the weight, whose descriptors have the same
// form.
template <typename Gradient>
typename Gradient::primitive_desc BackwardDesc(
    const Problem& problem, const dnnl::primitive_attr& attributes) {
  const Window window = WindowOf(problem);
  const memory::desc x = Activation(problem.x, problem);
  const memory::desc weight = Weight(problem, true);
  const memory::desc y = Activation(problem.y, problem);
  const auto forward = ForwardDesc(problem, attributes);
#if DNNL_VERSION_MAJOR < 3
  return {{kDirect, x, weight, y, window.stride, window.dilation,
           window.padding, window.padding},
          attributes,
          OneDnnEngine(),
          forward};
#else
  return {OneDnnEngine(),
          kDirect,
          x,
          weight,
          y,
          window.stride,
          window.dilation,
          window.padding,
          window.padding,
          forward,
          attributes};
#endif
}

void MakeReorder(const memory::desc& from, const memory::desc& to, Plan& plan) {
  if (from == to) return;
  plan.reorder = dnnl::reorder({OneDnnEngine(), from, OneDnnEngine(), to});
}

void PlanForward(const Problem& problem, const dnnl::primitive_attr& attributes,
                 Plan& plan) {
  const auto desc = ForwardDesc(problem, attributes);
  plan.x = desc.src_desc();
  plan.weight = desc.weights_desc();
  plan.bias = desc.bias_desc();
  plan.y = desc.dst_desc();
  plan.scratchpad = desc.scratchpad_desc();
  plan.primitive = dnnl::convolution_forward(desc);
  MakeReorder(plan.user_weight, plan.weight, plan);
}

void PlanBackwardInput(const Problem& problem,
                       const dnnl::primitive_attr& attributes, Plan& plan) {
  const auto desc =
      BackwardDesc<dnnl::convolution_backward_data>(problem, attributes);
  plan.x = desc.diff_src_desc();
  plan.weight = desc.weights_desc();
  plan.y = desc.diff_dst_desc();
  plan.scratchpad = desc.scratchpad_desc();
  plan.primitive = dnnl::convolution_backward_data(desc);
  MakeReorder(plan.user_weight, plan.weight, plan);
}

void PlanBackwardWeight(const Problem& problem,
                        const dnnl::primitive_attr& attributes, Plan& plan) {
  const auto desc =
      BackwardDesc<dnnl::convolution_backward_weights>(problem, attributes);
  plan.x = desc.src_desc();
  plan.weight = desc.diff_weights_desc();
  plan.y = desc.diff_dst_desc();
  plan.scratchpad = desc.scratchpad_desc();
  plan.primitive = dnnl::convolution_backward_weights(desc);
  MakeReorder(plan.weight, plan.user_weight, plan);
}

std::shared_ptr<const Plan> PlanFor(const Problem& problem) {
  static auto* plans = new LruCache<Problem, Plan>(1024);
  return plans->GetOrMake(problem, [&] {
    auto plan = std::make_shared<Plan>();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    plan->user_weight = Weight(problem, false);
    switch (problem.pass) {
      case Pass::kForward:
        PlanForward(problem, attributes, *plan);
        break;
      case Pass::kBackwardInput:
        PlanBackwardInput(problem, attributes, *plan);
        break;
      case Pass::kBackwardWeight:
        PlanBackwardWeight(problem, attributes, *plan);
        break;
    }
    plan->layout = LayoutNumber(plan->weight);
    return plan;
  });
}

void Reorder(const Plan& plan, const memory& from, const memory& to) {
  plan.reorder.execute(OneDnnStream(),
                       {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void Execute(const Plan& plan, Arguments arguments) {
  const Tensor scratchpad = EmptyFor(plan.scratchpad);
  arguments.emplace(DNNL_ARG_SCRATCHPAD, MemoryOf(plan.scratchpad, scratchpad));
  plan.primitive.execute(OneDnnStream(), arguments);
  OneDnnStream().wait();
}

// Returns the weight itself if it is dense in one of the two formats.
Tensor Dense(const Tensor& weight, Problem& problem) {
  const bool last = weight.SuggestFormat() == MemoryFormat::kChannelsLast;
  problem.weight_channels_last = last;
  return last ? weight : weight.Contiguous();
}

Tensor Packed(const Plan& plan, const Tensor& weight) {
  if (!plan.reorder) return weight;
  static auto* packed = new PackedWeights(1024);
  return packed->GetOrPack(weight, plan.layout, [&] {
    Tensor result = EmptyFor(plan.weight);
    Reorder(plan, MemoryOf(plan.user_weight, weight),
            MemoryOf(plan.weight, result));
    return result;
  });
}

// oneDNN 2.6 gathers the points that a strided 1x1 convolution reads, and with
// fewer than 16 channels it writes beyond the memory that it reserves for them.
bool OverrunsGathering(const Tensor& x, const Shape& weight,
                       const ops::Conv2dOptions& options) {
  constexpr std::array<int64_t, 2> kOnes = {1, 1};
  constexpr std::array<int64_t, 2> kNone = {0, 0};
  return weight[2] == 1 && weight[3] == 1 && options.padding == kNone &&
         options.stride != kOnes && x.dim(1) / options.groups < 16;
}

Shape ShapeOf(const std::array<int64_t, 4>& dims) {
  return Shape({dims[0], dims[1], dims[2], dims[3]});
}

}  // namespace

Tensor ConvForwardF32(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ops::Conv2dOptions& options) {
  return WithOneDnn("conv2d", [&] {
    const MemoryFormat format = x.SuggestFormat();
    Problem problem =
        MakeProblem(Pass::kForward, x.shape(), weight.shape(), options, format);
    problem.bias = bias.defined();
    const Tensor dense_x = x.Contiguous(format);
    const Tensor dense_weight = Dense(weight, problem);
    const auto plan = PlanFor(problem);
    const Tensor packed = Packed(*plan, dense_weight);
    Tensor y = Tensor::Empty(ShapeOf(problem.y), {.format = format});
    Arguments arguments = {{DNNL_ARG_SRC, MemoryOf(plan->x, dense_x)},
                           {DNNL_ARG_WEIGHTS, MemoryOf(plan->weight, packed)},
                           {DNNL_ARG_DST, MemoryOf(plan->y, y)}};
    const Tensor dense_bias = problem.bias ? bias.Contiguous() : bias;
    if (problem.bias)
      arguments.emplace(DNNL_ARG_BIAS, MemoryOf(plan->bias, dense_bias));
    Execute(*plan, std::move(arguments));
    return y;
  });
}

Tensor ConvBackwardInputF32(const Tensor& dy, const Tensor& weight,
                            const Shape& x_shape,
                            const ops::Conv2dOptions& options) {
  return WithOneDnn("conv2d_backward_input", [&] {
    const MemoryFormat format = dy.SuggestFormat();
    Problem problem = MakeProblem(Pass::kBackwardInput, x_shape, weight.shape(),
                                  options, format);
    const Tensor dense_dy = dy.Contiguous(format);
    const Tensor dense_weight = Dense(weight, problem);
    const auto plan = PlanFor(problem);
    const Tensor packed = Packed(*plan, dense_weight);
    Tensor dx = Tensor::Empty(x_shape, {.format = format});
    Execute(*plan, {{DNNL_ARG_DIFF_DST, MemoryOf(plan->y, dense_dy)},
                    {DNNL_ARG_WEIGHTS, MemoryOf(plan->weight, packed)},
                    {DNNL_ARG_DIFF_SRC, MemoryOf(plan->x, dx)}});
    return dx;
  });
}

Tensor ConvBackwardWeightF32(const Tensor& dy, const Tensor& x,
                             const Shape& weight_shape,
                             const ops::Conv2dOptions& options,
                             MemoryFormat order) {
  if (OverrunsGathering(x, weight_shape, options)) {
    const Tensor points = x.Slice(2, 0, x.dim(2), options.stride[0])
                              .Slice(3, 0, x.dim(3), options.stride[1])
                              .Contiguous(x.SuggestFormat());
    return ConvBackwardWeightF32(dy, points, weight_shape,
                                 {.groups = options.groups}, order);
  }
  return WithOneDnn("conv2d_backward_weight", [&] {
    const MemoryFormat format = x.SuggestFormat();
    Problem problem = MakeProblem(Pass::kBackwardWeight, x.shape(),
                                  weight_shape, options, format);
    problem.weight_channels_last = order == MemoryFormat::kChannelsLast;
    const Tensor dense_x = x.Contiguous(format);
    const Tensor dense_dy = dy.Contiguous(format);
    const auto plan = PlanFor(problem);
    Tensor dweight = Tensor::Empty(weight_shape, {.format = order});
    const Tensor packed = plan->reorder ? EmptyFor(plan->weight) : dweight;
    const memory result = MemoryOf(plan->weight, packed);
    Execute(*plan, {{DNNL_ARG_SRC, MemoryOf(plan->x, dense_x)},
                    {DNNL_ARG_DIFF_DST, MemoryOf(plan->y, dense_dy)},
                    {DNNL_ARG_DIFF_WEIGHTS, result}});
    if (plan->reorder)
      Reorder(*plan, result, MemoryOf(plan->user_weight, dweight));
    return dweight;
  });
}

}  // namespace baton::cpu
