// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/onednn.h"

namespace baton::cpu {

const dnnl::engine& OneDnnEngine() {
  // Never destroyed, because threads may still compute while the program ends.
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& OneDnnStream() {
  thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

dnnl::memory::desc DescOf(const Tensor& tensor) {
  dnnl::memory::dims dims(tensor.shape().begin(), tensor.shape().end());
  dnnl::memory::dims strides(tensor.strides().begin(), tensor.strides().end());
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

dnnl::memory MemoryOf(const dnnl::memory::desc& desc, const Tensor& tensor) {
  return dnnl::memory(desc, OneDnnEngine(), tensor.raw_data());
}

Tensor EmptyFor(const dnnl::memory::desc& desc) {
  return Tensor::Empty(Shape({static_cast<int64_t>(desc.get_size())}),
                       {.dtype = DType::kU8});
}

}  // namespace baton::cpu
