// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/matmul.h"

#include "core/cuda/cublas_lt.h"
#include "core/matrix_view.h"
#include "core/precision.h"
#include "core/strided_loop.h"

// The library's matrices are column-major, so it reads ours as transposed: our
// a b is its (b^T a^T)^T, and every operand changes sides.
namespace baton::cuda {
namespace {

// If a batch needs more calls, because no single stride expresses it, it is
// copied into one.
constexpr int64_t kMaxCalls = 4;

// Row-major operands of out [batch, m, n] = a [batch, m, k] b [batch, k, n].
struct Operands {
  const Tensor& a;
  const Tensor& b;
  const Tensor& out;
  int64_t m, n, k;
  Tensor bias = {};
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  bool accumulate = false;
};

// One run of a batch: its offset and stride in each tensor.
struct Batch {
  int64_t count = 1;
  int64_t a = 0, b = 0, out = 0;
  int64_t a_step = 0, b_step = 0, out_step = 0;
};

LtMatrix MatrixOf(const Tensor& tensor, int64_t offset, int64_t step) {
  const MatrixView view = ViewMatrix(tensor);
  return {.stride = view.stride,
          .step = step,
          .transposed = view.transposed,
          .alignment = AlignmentOf(tensor, offset, step)};
}

bool TryMultiply(const char* op, const Operands& x, const Batch& batch = {}) {
  LtProduct product{
      .dtype = x.out.dtype(),
      .tf32 = x.out.dtype() == DType::kF32 && Tf32Allowed(),
      .accumulate = x.accumulate,
      .epilogue = x.epilogue,
      .m = x.n,
      .n = x.m,
      .k = x.k,
      .batch = batch.count,
      .a = MatrixOf(x.b, batch.b, batch.b_step),
      .b = MatrixOf(x.a, batch.a, batch.a_step),
      .d = {.stride = x.n,
            .step = batch.out_step,
            .alignment = AlignmentOf(x.out, batch.out, batch.out_step)}};
  if (x.bias.defined()) product.bias_alignment = AlignmentOf(x.bias, 0, 0);
  return Multiply(op, product,
                  {.a = x.b,
                   .b = x.a,
                   .d = x.out,
                   .bias = x.bias,
                   .a_offset = batch.b,
                   .b_offset = batch.a,
                   .d_offset = batch.out});
}

void MultiplyOrFail(const char* op, const Operands& x,
                    const Batch& batch = {}) {
  Require(TryMultiply(op, x, batch), op, "cuBLAS has no kernel for ",
          Name(x.out.dtype()), " [", x.m, ", ", x.k, "] x [", x.k, ", ", x.n,
          "]");
}

Dims LeadingStrides(const Tensor& tensor) {
  return Dims(tensor.strides().begin(), tensor.strides().end() - 2);
}

StridedLoop<3> BatchLoop(const Shape& batch, const Tensor& out, const Tensor& a,
                         const Tensor& b) {
  const Dims out_strides = LeadingStrides(out);
  const Dims a_strides = LeadingStrides(a);
  const Dims b_strides = LeadingStrides(b);
  return StridedLoop<3>(batch, {&out_strides, &a_strides, &b_strides});
}

// Returns whether the rows of all matrices of a have one stride and share one
// b.
bool IsOneProduct(const Operands& x, const Batch& batch) {
  const MatrixView a = ViewMatrix(x.a);
  return batch.count > 1 && batch.b_step == 0 && !a.transposed &&
         batch.a_step == x.m * a.stride && batch.out_step == x.m * x.n;
}

void MultiplyRun(const char* op, Operands x, Batch batch) {
  if (IsOneProduct(x, batch)) {
    x.m *= batch.count;
    batch.count = 1;
  }
  if (batch.count == 1) batch.a_step = batch.b_step = batch.out_step = 0;
  MultiplyOrFail(op, x, batch);
}

// Multiplies the runs along the innermost dim, one after another.
void MultiplyAll(const char* op, const Operands& x,
                 const StridedLoop<3>& loop) {
  const int64_t runs = loop.numel / loop.inner_size();
  for (int64_t run = 0; run < runs; ++run) {
    Batch batch{.count = loop.inner_size(),
                .a_step = loop.inner_stride(1),
                .b_step = loop.inner_stride(2),
                .out_step = loop.inner_stride(0)};
    int64_t rest = run;
    for (size_t d = loop.sizes.size() - 1; d-- > 0;) {
      const int64_t at = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      batch.out += at * loop.strides[0][d];
      batch.a += at * loop.strides[1][d];
      batch.b += at * loop.strides[2][d];
    }
    MultiplyRun(op, x, batch);
  }
}

// Returns x [..., I] as a matrix [rows, I].
Tensor Rows(const Tensor& x) {
  return AsMatrices(x.rank() == 1 ? x.Unsqueeze(0) : x.Flatten(0, -2));
}

Tensor EmptyLinear(const Tensor& x, const Tensor& weight) {
  Dims dims = x.shape().dims();
  dims.back() = weight.dim(0);
  return Tensor::Empty(Shape(dims), {.dtype = x.dtype(), .device = x.device()});
}

// The library has epilogues for f32, f16 and bf16.
bool HasEpilogues(const Tensor& x) {
  return x.dtype() != DType::kF64 && x.numel() > 0;
}

bool TryLinear(const char* op, const Tensor& y, const Tensor& x,
               const Tensor& weight, const Tensor& bias,
               cublasLtEpilogue_t epilogue, bool accumulate) {
  const Tensor rows = Rows(x);
  const Tensor right = AsMatrices(weight.Transpose(0, 1));
  return TryMultiply(op, {.a = rows,
                          .b = right,
                          .out = y,
                          .m = rows.dim(0),
                          .n = weight.dim(0),
                          .k = weight.dim(1),
                          .bias = bias,
                          .epilogue = epilogue,
                          .accumulate = accumulate});
}

}  // namespace

Tensor BatchedMatmul(const Tensor& a, const Tensor& b, const Shape& batch) {
  constexpr char kOp[] = "matmul";
  const int64_t m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  Dims dims = batch.dims();
  dims.push_back(m);
  dims.push_back(n);
  const TensorOptions options = {.dtype = a.dtype(), .device = a.device()};
  const Tensor out = Tensor::Empty(Shape(dims), options);
  if (out.numel() == 0) return out;
  if (k == 0) return Tensor::Zeros(Shape(dims), options);
  Tensor left = AsMatrices(a, batch), right = AsMatrices(b, batch);
  StridedLoop<3> loop = BatchLoop(batch, out, left, right);
  if (loop.numel / loop.inner_size() > kMaxCalls) {
    left = left.Contiguous();
    right = right.Contiguous();
    loop = BatchLoop(batch, out, left, right);
  }
  MultiplyAll(kOp, {.a = left, .b = right, .out = out, .m = m, .n = n, .k = k},
              loop);
  return out;
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  constexpr char kOp[] = "linear";
  const Tensor y = EmptyLinear(x, weight);
  if (y.numel() == 0) return y;
  const bool empty_sums = weight.dim(1) == 0;
  if (bias.defined() && !empty_sums && HasEpilogues(x) &&
      TryLinear(kOp, y, x, weight, bias.Contiguous(), CUBLASLT_EPILOGUE_BIAS,
                false)) {
    return y;
  }
  if (bias.defined()) {
    y.CopyFrom(bias);
  } else if (empty_sums) {
    y.Fill(0);
  }
  if (empty_sums) return y;
  Require(TryLinear(kOp, y, x, weight, Tensor(), CUBLASLT_EPILOGUE_DEFAULT,
                    bias.defined()),
          kOp, "cuBLAS has no kernel for x ", x.shape().ToString(),
          " and weight ", weight.shape().ToString());
  return y;
}

Tensor LinearRelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!HasEpilogues(x) || weight.numel() == 0) return Tensor();
  const Tensor y = EmptyLinear(x, weight);
  const Tensor dense_bias = bias.defined() ? bias.Contiguous() : bias;
  const cublasLtEpilogue_t epilogue =
      bias.defined() ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  const bool done =
      TryLinear("linear_relu", y, x, weight, dense_bias, epilogue, false);
  return done ? y : Tensor();
}

LinearGradients LinearParameterGradients(const Tensor& dy, const Tensor& x) {
  if (!HasEpilogues(x) || dy.numel() == 0) return {};
  const TensorOptions options = {.dtype = x.dtype(), .device = x.device()};
  const LinearGradients result = {Tensor::Empty({dy.dim(1), x.dim(1)}, options),
                                  Tensor::Empty({dy.dim(1)}, options)};
  const Tensor left = AsMatrices(dy.Transpose(0, 1)), right = AsMatrices(x);
  // The library uses dy as its B, whose sums over k are the sums of dy's rows.
  const bool done =
      TryMultiply("linear_backward", {.a = left,
                                      .b = right,
                                      .out = result.weight,
                                      .m = dy.dim(1),
                                      .n = x.dim(1),
                                      .k = dy.dim(0),
                                      .bias = result.bias,
                                      .epilogue = CUBLASLT_EPILOGUE_BGRADB});
  return done ? result : LinearGradients{};
}

}  // namespace baton::cuda
