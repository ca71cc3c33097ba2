// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "autograd/functions/loss.h"

#include <vector>

#include "autograd/autocast.h"
#include "autograd/functions/arithmetic.h"
#include "autograd/functions/function.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/reduce.h"
#include "autograd/functions/shape.h"
#include "autograd/functions/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/ops/indexing.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"

namespace baton::autograd {
namespace {

Variable Reduced(const char* op, const Variable& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return losses;
    case Reduction::kSum:
      return Sum(losses);
    case Reduction::kMean:
      return Mean(losses);
    case Reduction::kBatchMean:
      break;
  }
  Fail(op, "a batch mean is for KL divergence alone");
}

// Returns the loss of each element.
Variable OfPoints(const char* op, PointLoss loss, const Variable& given_x,
                  const Variable& given_target, double parameter = 0) {
  const Variable x = InF32(given_x), target = InF32(given_target);
  // Returns the formula for the first of `mine`, the input, or for the second.
  const auto gradient = [=](LossPart part, size_t mine) {
    return [=](const Backprop& p) {
      const Tensor slope = ops::ComputePointLoss(op, loss, part, p.saved(0),
                                                 p.saved(1), parameter);
      return ops::SumTo(ops::Mul(p.dy(), slope), p.saved(mine).shape());
    };
  };
  return Record(op,
                ops::ComputePointLoss(op, loss, LossPart::kValue, x.tensor(),
                                      target.tensor(), parameter),
                {x.tensor(), target.tensor()},
                {{x, gradient(LossPart::kInputSlope, 0)},
                 {target, gradient(LossPart::kTargetSlope, 1)}});
}

void RequireOneShape(const char* op, const Variable& x,
                     const Variable& target) {
  Require(x.shape() == target.shape(), op, "expected a target of shape ",
          x.shape().ToString(), ", got ", target.shape().ToString());
}

Variable Weighted(const char* op, const Variable& losses,
                  const Tensor& weight) {
  if (!weight.defined()) return losses;
  Require(BroadcastShapes(op, losses.shape(), weight.shape()) == losses.shape(),
          op, "a weight of shape ", weight.shape().ToString(),
          " does not broadcast to ", losses.shape().ToString());
  return Mul(losses, weight);
}

Tensor OneLike(const Tensor& x) {
  return Tensor::Ones(Shape(), {.dtype = x.dtype(), .device = x.device()});
}

// Returns `x`, cast as autocast requires, with the classes last.
Variable ClassesLast(const char* op, const Variable& given, int class_axis) {
  const Variable x = InF32(given);
  const int rank = x.shape().rank();
  const int at = NormalizeAxis(op, class_axis, rank);
  if (at == rank - 1) return x;
  std::vector<int> axes;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != at) axes.push_back(axis);
  }
  axes.push_back(at);
  return Permute(x, axes);
}

// Casts the weights to the dtype that autocast chose for x.
ClassLossOptions OptionsFor(const Variable& classes, const Variable& x,
                            ClassLossOptions options) {
  if (options.weight.defined() && classes.dtype() != x.dtype())
    options.weight = options.weight.To(classes.dtype());
  return options;
}

Variable OfLabels(const Variable& logits, const Tensor& labels,
                  const ClassLossOptions& options) {
  const ops::CrossEntropyResult result =
      ops::CrossEntropy(logits.tensor(), labels, options);
  return Record(
      "cross_entropy", result.loss, {result.log_softmax, labels},
      {{logits, [divisor = result.divisor, options](const Backprop& p) {
          return ops::CrossEntropyBackward(p.dy(), p.saved(0), p.saved(1),
                                           divisor, options);
        }}});
}

void RequireClassProbabilities(const char* op, const Variable& logits,
                               const Variable& targets,
                               const ClassLossOptions& options) {
  RequireOneShape(op, logits, targets);
  Require(options.ignore_index < 0, op, "targets are probabilities: label ",
          options.ignore_index, " cannot be ignored");
  // Check the other options with an empty batch.
  const Tensor none = logits.tensor().Flatten(0, -1).Slice(0, 0, 0);
  const int64_t classes = logits.dim(-1);
  ops::RequireClasses(
      op, none.Reshape({0, classes}),
      Tensor::Empty({0}, {.dtype = DType::kI64, .device = none.device()}),
      options);
}

Variable OfProbabilities(const Variable& logits, const Variable& targets,
                         const ClassLossOptions& options) {
  constexpr char kOp[] = "cross_entropy";
  RequireClassProbabilities(kOp, logits, targets, options);
  const double smoothing = options.label_smoothing;
  const auto classes = static_cast<double>(logits.dim(-1));
  Variable wanted = targets;
  if (smoothing > 0) {
    wanted = AddScalar(MulScalar(wanted, 1 - smoothing), smoothing / classes);
  }
  const Variable terms =
      Weighted(kOp, Mul(LogSoftmax(logits, -1), wanted), options.weight);
  return Reduced(kOp, Neg(Sum(terms, {-1})), options.reduction);
}

}  // namespace

Variable L1Loss(const Variable& x, const Variable& target,
                Reduction reduction) {
  constexpr char kOp[] = "l1_loss";
  return Reduced(kOp, OfPoints(kOp, PointLoss::kL1, x, target), reduction);
}

Variable MseLoss(const Variable& given_x, const Variable& given_target,
                 Reduction reduction) {
  constexpr char kOp[] = "mse_loss";
  const Variable x = InF32(given_x), target = InF32(given_target);
  RequireOneShape(kOp, x, target);
  if (reduction != Reduction::kMean) {
    return Reduced(kOp, OfPoints(kOp, PointLoss::kSquared, x, target),
                   reduction);
  }
  return Record(kOp, ops::MseLoss(x.tensor(), target.tensor()),
                {x.tensor(), target.tensor()},
                {{x,
                  [](const Backprop& p) {
                    return ops::MseLossBackward(p.dy(), p.saved(0), p.saved(1));
                  }},
                 {target, [](const Backprop& p) {
                    return ops::MseLossBackward(p.dy(), p.saved(1), p.saved(0));
                  }}});
}

Variable SmoothL1Loss(const Variable& x, const Variable& target, double beta,
                      Reduction reduction) {
  constexpr char kOp[] = "smooth_l1_loss";
  Require(beta >= 0, kOp, "expected beta >= 0, got ", beta);
  const PointLoss loss = beta == 0 ? PointLoss::kL1 : PointLoss::kSmoothL1;
  return Reduced(kOp, OfPoints(kOp, loss, x, target, beta), reduction);
}

Variable HuberLoss(const Variable& x, const Variable& target, double delta,
                   Reduction reduction) {
  constexpr char kOp[] = "huber_loss";
  Require(delta > 0, kOp, "expected delta > 0, got ", delta);
  return Reduced(kOp, OfPoints(kOp, PointLoss::kHuber, x, target, delta),
                 reduction);
}

Variable BceLoss(const Variable& x, const Variable& target,
                 const BinaryLossOptions& options) {
  constexpr char kOp[] = "bce_loss";
  RequireOneShape(kOp, x, target);
  Require(!options.pos_weight.defined(), kOp,
          "a weight of positive targets is for logits");
  const Variable losses = OfPoints(kOp, PointLoss::kBinary, x, target);
  return Reduced(kOp, Weighted(kOp, losses, options.weight), options.reduction);
}

Variable BceWithLogitsLoss(const Variable& x, const Variable& target,
                           const BinaryLossOptions& options) {
  constexpr char kOp[] = "bce_with_logits_loss";
  RequireOneShape(kOp, x, target);
  Variable losses = OfPoints(kOp, PointLoss::kBinaryLogits, x, target);
  if (options.pos_weight.defined()) {
    // A positive target costs pos_weight times as much: this is the additional
    // cost.
    const Variable positive =
        OfPoints(kOp, PointLoss::kBinaryLogits, x, OneLike(x.tensor()));
    const Tensor more = ops::AddScalar(options.pos_weight, -1);
    losses = Add(losses, Mul(Weighted(kOp, target, more), positive));
  }
  return Reduced(kOp, Weighted(kOp, losses, options.weight), options.reduction);
}

Variable KlDivLoss(const Variable& x, const Variable& target, bool log_target,
                   Reduction reduction) {
  constexpr char kOp[] = "kl_div_loss";
  const PointLoss loss = log_target ? PointLoss::kKlLog : PointLoss::kKl;
  const Variable losses = OfPoints(kOp, loss, x, target);
  if (reduction != Reduction::kBatchMean) {
    return Reduced(kOp, losses, reduction);
  }
  const Variable sum = Sum(losses);
  if (x.shape().rank() == 0) return sum;
  return MulScalar(sum, 1 / static_cast<double>(x.dim(0)));
}

Variable NllLoss(const Variable& x, const Tensor& labels,
                 const ClassLossOptions& given, int class_axis) {
  constexpr char kOp[] = "nll_loss";
  Require(given.label_smoothing == 0, kOp,
          "label smoothing is for cross entropy");
  const Variable classes = ClassesLast(kOp, x, class_axis);
  const ClassLossOptions options = OptionsFor(classes, x, given);
  ops::RequireClasses(kOp, classes.tensor(), labels, options);
  const Tensor ignored = ops::Equal(
      labels, Tensor::Full(Shape(), static_cast<double>(options.ignore_index),
                           {.dtype = DType::kI64, .device = labels.device()}));
  const Tensor index = ops::MaskedFill(labels, ignored, 0).Unsqueeze(-1);
  // Ignored labels look up class 0; their losses are replaced below.
  const Variable taken = Squeeze(Gather(classes, -1, index), -1);
  Variable losses = Neg(taken);
  Tensor weight = Tensor::Ones(
      labels.shape(), {.dtype = classes.dtype(), .device = labels.device()});
  if (options.weight.defined()) {
    weight = ops::Embedding(options.weight.Unsqueeze(-1), index.Squeeze(-1))
                 .Squeeze(-1);
    losses = Mul(losses, weight);
  }
  losses = MaskedFill(losses, ignored, 0);
  if (options.reduction != Reduction::kMean) {
    return Reduced(kOp, losses, options.reduction);
  }
  return Div(Sum(losses), ops::Sum(ops::MaskedFill(weight, ignored, 0)));
}

Variable CrossEntropy(const Variable& logits, const Variable& targets,
                      const ClassLossOptions& given, int class_axis) {
  constexpr char kOp[] = "cross_entropy";
  const Variable classes = ClassesLast(kOp, logits, class_axis);
  const ClassLossOptions options = OptionsFor(classes, logits, given);
  if (targets.dtype() == DType::kI64) {
    return OfLabels(classes, targets.tensor(), options);
  }
  return OfProbabilities(classes, ClassesLast(kOp, targets, class_axis),
                         options);
}

}  // namespace baton::autograd
