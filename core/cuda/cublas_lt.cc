// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cublas_lt.h"

#include <array>
#include <map>
#include <utility>

#include "core/cuda/launch.h"
#include "core/mutex.h"

namespace baton::cuda {
namespace {

constexpr size_t kMaxWorkspace = size_t{32} << 20;
constexpr size_t kMaxChoices = 4096;
constexpr int kMaxDevices = 64;

void CheckLt(const char* op, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  Fail(op, absl::StrCat("cuBLAS: ", cublasLtGetStatusName(status)),
       absl::StatusCode::kInternal);
}

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t ComputeTypeOf(const LtProduct& product) {
  if (product.dtype == DType::kF64) return CUBLAS_COMPUTE_64F;
  return product.dtype == DType::kF32 && product.tf32
             ? CUBLAS_COMPUTE_32F_FAST_TF32
             : CUBLAS_COMPUTE_32F;
}

// The library's description of a product. It is on the stack, because making it
// costs less than finding it in a cache.
class Description {
 public:
  Description(const char* op, const LtProduct& product, void* bias) : op_(op) {
    const cudaDataType_t scale =
        product.dtype == DType::kF64 ? CUDA_R_64F : CUDA_R_32F;
    CheckLt(op,
            cublasLtMatmulDescInit(&operation_, ComputeTypeOf(product), scale));
    Set(CUBLASLT_MATMUL_DESC_TRANSA, Operation(product.a));
    Set(CUBLASLT_MATMUL_DESC_TRANSB, Operation(product.b));
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, product.epilogue);
    if (bias != nullptr) Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    Describe(&a_, product, product.a, product.m, product.k);
    Describe(&b_, product, product.b, product.k, product.n);
    Describe(&d_, product, product.d, product.m, product.n);
  }

  cublasLtMatmulDesc_t operation() { return &operation_; }
  cublasLtMatrixLayout_t a() { return &a_; }
  cublasLtMatrixLayout_t b() { return &b_; }
  cublasLtMatrixLayout_t d() { return &d_; }

 private:
  static cublasOperation_t Operation(const LtMatrix& matrix) {
    return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    CheckLt(op_, cublasLtMatmulDescSetAttribute(&operation_, attribute, &value,
                                                sizeof(value)));
  }

  // Describes a matrix that is rows x columns after its transposition.
  void Describe(cublasLtMatrixLayoutOpaque_t* layout, const LtProduct& product,
                const LtMatrix& matrix, int64_t rows, int64_t columns) {
    if (matrix.transposed) std::swap(rows, columns);
    CheckLt(op_, cublasLtMatrixLayoutInit(
                     layout, TypeOf(product.dtype), static_cast<uint64_t>(rows),
                     static_cast<uint64_t>(columns), matrix.stride));
    if (product.batch == 1) return;
    const auto count = static_cast<int32_t>(product.batch);
    CheckLt(op_, cublasLtMatrixLayoutSetAttribute(
                     layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                     sizeof(count)));
    CheckLt(op_, cublasLtMatrixLayoutSetAttribute(
                     layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                     &matrix.step, sizeof(matrix.step)));
  }

  const char* const op_;
  cublasLtMatmulDescOpaque_t operation_ = {};
  cublasLtMatrixLayoutOpaque_t a_ = {}, b_ = {}, d_ = {};
};

class Preference {
 public:
  Preference(const char* op, const LtProduct& product) : op_(op) {
    CheckLt(op, cublasLtMatmulPreferenceInit(&preference_));
    Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMaxWorkspace});
    if (SizeOf(product.dtype) == 2) {  // parts of a sum stay f32
      Set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
          uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    }
    const auto d = static_cast<uint32_t>(product.d.alignment);
    Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        static_cast<uint32_t>(product.a.alignment));
    Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        static_cast<uint32_t>(product.b.alignment));
    Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d);
    Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
  }
  cublasLtMatmulPreference_t get() { return &preference_; }

 private:
  template <typename T>
  void Set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    CheckLt(op_, cublasLtMatmulPreferenceSetAttribute(&preference_, attribute,
                                                      &value, sizeof(value)));
  }

  const char* const op_;
  cublasLtMatmulPreferenceOpaque_t preference_ = {};
};

struct Choice {
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace = 0;
  bool exists = false;
};

// One device's handle, and the algorithms chosen for it. Thread-safe.
class Library {
 public:
  cublasLtHandle_t Handle(const char* op) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (handle_ == nullptr) CheckLt(op, cublasLtCreate(&handle_));
    return handle_;
  }

  Choice For(const char* op, const LtProduct& product, Description& description)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const cublasLtHandle_t handle = Handle(op);
    MutexLock lock(mutex_);
    const auto known = choices_.find(product);
    if (known != choices_.end()) return known->second;
    if (choices_.size() >= kMaxChoices) choices_.clear();
    return choices_[product] = Choose(op, handle, product, description);
  }

 private:
  static Choice Choose(const char* op, cublasLtHandle_t handle,
                       const LtProduct& product, Description& description) {
    Preference preference(op, product);
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, description.operation(), description.a(), description.b(),
        description.d(), description.d(), preference.get(), 1, &result, &found);
    const bool exists = status == CUBLAS_STATUS_SUCCESS && found > 0 &&
                        result.state == CUBLAS_STATUS_SUCCESS;
    return {result.algo, result.workspaceSize, exists};
  }

  Mutex mutex_;
  cublasLtHandle_t handle_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::map<LtProduct, Choice> choices_ ABSL_GUARDED_BY(mutex_);
};

// Never destroyed, because the driver may be gone by then.
Library& LibraryOf(int device) {
  static auto& libraries = *new std::array<Library, kMaxDevices>;
  return libraries[static_cast<size_t>(device)];
}

template <typename S>
void Run(const char* op, const Launch& launch, Description& description,
         const Choice& choice, const LtProduct& product,
         const std::array<void*, 3>& matrices, const Tensor& workspace) {
  const S one = 1;
  const S beta = product.accumulate ? 1 : 0;
  const auto [a, b, d] = matrices;
  void* const scratch = workspace.defined() ? workspace.raw_data() : nullptr;
  CheckLt(op, cublasLtMatmul(LibraryOf(launch.device()).Handle(op),
                             description.operation(), &one, a, description.a(),
                             b, description.b(), &beta, d, description.d(), d,
                             description.d(), &choice.algorithm, scratch,
                             choice.workspace, launch.stream()));
}

void* At(const Tensor& tensor, int64_t offset) {
  return static_cast<std::byte*>(tensor.raw_data()) +
         offset * static_cast<int64_t>(SizeOf(tensor.dtype()));
}

}  // namespace

bool Multiply(const char* op, const LtProduct& product,
              const LtOperands& operands) {
  const auto& [a, b, d, bias, a_offset, b_offset, d_offset] = operands;
  const int device = d.device().index();
  const DeviceScope scope(device);
  Description description(op, product,
                          bias.defined() ? bias.raw_data() : nullptr);
  const Choice choice = LibraryOf(device).For(op, product, description);
  if (!choice.exists) return false;
  Tensor workspace;
  if (choice.workspace > 0) {
    workspace = Tensor::Empty({static_cast<int64_t>(choice.workspace)},
                              {.dtype = DType::kU8, .device = d.device()});
  }
  const bool writes_bias = product.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  const Tensor none;
  const Launch launch(op, {&d, &workspace, writes_bias ? &bias : &none},
                      {&a, &b, writes_bias ? &none : &bias});
  const std::array<void*, 3> matrices = {At(a, a_offset), At(b, b_offset),
                                         At(d, d_offset)};
  if (product.dtype == DType::kF64) {
    Run<double>(op, launch, description, choice, product, matrices, workspace);
  } else {
    Run<float>(op, launch, description, choice, product, matrices, workspace);
  }
  return true;
}

int AlignmentOf(const Tensor& tensor, int64_t offset, int64_t step) {
  const auto size = static_cast<int64_t>(SizeOf(tensor.dtype()));
  const auto bits = reinterpret_cast<uint64_t>(At(tensor, offset)) |
                    static_cast<uint64_t>(step * size) | 256u;
  return static_cast<int>(bits & (~bits + 1));
}

}  // namespace baton::cuda
