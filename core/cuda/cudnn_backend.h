// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cudnn.h>
#include <cudnn_backend.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

// The parts of cuDNN that core/cuda uses: handles, errors, and the backend's
// descriptors as values.
namespace baton::cuda {

// Throws Error(Internal, "[op] cuDNN: NAME: description") unless `status` is
// success.
void CheckCudnn(const char* op, cudnnStatus_t status);

// Returns the calling thread's handle, which enqueues its work on `stream` of
// `device`, the thread's current one. Handles are never destroyed: when a
// thread ends, later threads reuse its handles.
cudnnHandle_t CudnnHandle(const char* op, int device, cudaStream_t stream);

// Maps the C++ type T to the backend's name of it.
template <typename T>
struct AttributeType;
template <cudnnBackendAttributeType_t kType>
using AttributeConstant =
    std::integral_constant<cudnnBackendAttributeType_t, kType>;
template <>
struct AttributeType<cudnnHandle_t> : AttributeConstant<CUDNN_TYPE_HANDLE> {};
template <>
struct AttributeType<cudnnDataType_t>
    : AttributeConstant<CUDNN_TYPE_DATA_TYPE> {};
template <>
struct AttributeType<bool> : AttributeConstant<CUDNN_TYPE_BOOLEAN> {};
template <>
struct AttributeType<int64_t> : AttributeConstant<CUDNN_TYPE_INT64> {};
template <>
struct AttributeType<float> : AttributeConstant<CUDNN_TYPE_FLOAT> {};
template <>
struct AttributeType<double> : AttributeConstant<CUDNN_TYPE_DOUBLE> {};
template <>
struct AttributeType<void*> : AttributeConstant<CUDNN_TYPE_VOID_PTR> {};
template <>
struct AttributeType<cudnnConvolutionMode_t>
    : AttributeConstant<CUDNN_TYPE_CONVOLUTION_MODE> {};
template <>
struct AttributeType<cudnnBackendHeurMode_t>
    : AttributeConstant<CUDNN_TYPE_HEUR_MODE> {};
template <>
struct AttributeType<cudnnBackendKnobType_t>
    : AttributeConstant<CUDNN_TYPE_KNOB_TYPE> {};
template <>
struct AttributeType<cudnnPointwiseMode_t>
    : AttributeConstant<CUDNN_TYPE_POINTWISE_MODE> {};
template <>
struct AttributeType<cudnnReduceTensorOp_t>
    : AttributeConstant<CUDNN_TYPE_REDUCTION_OPERATOR_TYPE> {};
template <>
struct AttributeType<cudnnBackendNumericalNote_t>
    : AttributeConstant<CUDNN_TYPE_NUMERICAL_NOTE> {};

// Owns one backend descriptor. The descriptors that it refers to must outlive
// it. Throws Error led by `op` if cuDNN refuses a call, except in the functions
// named Try. Thread-compatible.
class Descriptor {
 public:
  Descriptor(const char* op, cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

  // A value is one of the types above, a span of them, a Descriptor or a vector
  // of Descriptors.
  template <typename Value>
  void Set(cudnnBackendAttributeName_t name, const Value& value) {
    CheckCudnn(op_, Give(name, value));
  }
  // Returns false if cuDNN refuses the value.
  template <typename Value>
  bool TrySet(cudnnBackendAttributeName_t name, const Value& value) {
    return Give(name, value) == CUDNN_STATUS_SUCCESS;
  }
  void Finalize();
  // Returns false if cuDNN has no way to do what the descriptor says.
  bool TryFinalize();

  // Returns the attribute's values, but at most `most`.
  template <typename T>
  std::vector<T> Get(cudnnBackendAttributeName_t name, size_t most) const {
    std::vector<T> values(most);
    values.resize(GetRaw(name, AttributeType<T>::value, most, values.data()));
    return values;
  }
  int64_t GetInt(cudnnBackendAttributeName_t name) const {
    return Get<int64_t>(name, 1).at(0);
  }
  // Returns the descriptors, of `type`, that the attribute holds, but at most
  // `most`.
  std::vector<Descriptor> GetDescriptors(cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type,
                                         size_t most) const;

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t descriptor) const {
      cudnnBackendDestroyDescriptor(descriptor);
    }
  };

  template <typename T>
  cudnnStatus_t Give(cudnnBackendAttributeName_t name, const T& value) {
    return GiveRaw(name, AttributeType<T>::value, 1, &value);
  }
  template <typename T>
  cudnnStatus_t Give(cudnnBackendAttributeName_t name,
                     const std::span<T>& values) {
    return GiveRaw(name, AttributeType<std::remove_const_t<T>>::value,
                   values.size(), values.data());
  }
  cudnnStatus_t Give(cudnnBackendAttributeName_t name, const Descriptor& value);
  cudnnStatus_t Give(cudnnBackendAttributeName_t name,
                     const std::vector<Descriptor>& values);
  cudnnStatus_t GiveRaw(cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, size_t count,
                        const void* values);
  size_t GetRaw(cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, size_t most,
                void* values) const;

  const char* op_;
  std::unique_ptr<void, Destroy> descriptor_;
};

}  // namespace baton::cuda
