// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/c/baton.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/dtype.h"
#include "core/status.h"
#include "core/tensor.h"
#include "rpc/agent.h"
#include "rpc/cluster.h"
#include "tools/c/named_functions.h"
#include "tools/cluster_flags.h"

struct baton_tensor {
  baton::Tensor tensor;
};

struct baton_results {
  std::vector<baton::Tensor> outputs;
  absl::Status status;
};

struct baton_worker {
  std::unique_ptr<baton::rpc::Agent> agent;
};

namespace baton::c {
namespace {

thread_local std::string error;

// No exception crosses into C: returns what `make` returns, or `failed` after
// an error, which it stores for baton_error.
template <typename T, typename Fn>
T Guarded(T failed, Fn make) {
  error.clear();
  absl::StatusOr<T> made = [&]() -> absl::StatusOr<T> {
    try {
      return make();
    } catch (const std::exception& thrown) {
      return absl::InternalError(thrown.what());
    }
  }();
  if (made.ok()) return *std::move(made);
  error = absl::StrCat(absl::StatusCodeToString(made.status().code()), ": ",
                       made.status().message());
  return failed;
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

absl::StatusOr<std::unique_ptr<baton_tensor>> MakeTensor(int dtype, int dims,
                                                         const int64_t* shape,
                                                         const void* elements) {
  if (dtype < BATON_F32 || dtype > BATON_BOOL) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no dtype ", dtype));
  }
  if (dims < 0 || (dims > 0 && shape == nullptr))
    return absl::InvalidArgumentError("a tensor needs its shape");
  auto made = std::make_unique<baton_tensor>();
  made->tensor = Tensor::Zeros(Shape(Dims(shape, shape + dims)),
                               {.dtype = static_cast<DType>(dtype)});
  if (elements != nullptr && made->tensor.numel() > 0) {
    std::memcpy(made->tensor.raw_data(), elements,
                static_cast<size_t>(baton_tensor_bytes(made.get())));
  }
  return made;
}

std::vector<Tensor> TensorsOf(const baton_tensor* const* tensors, int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) all.push_back(tensors[i]->tensor);
  return all;
}

// Converts to the form of the C interface: row-major, in host memory.
std::unique_ptr<baton_tensor> Wrap(const Tensor& tensor) {
  return std::make_unique<baton_tensor>(
      baton_tensor{tensor.To(Device::Cpu()).Contiguous()});
}

NamedFunction FunctionOf(const baton_export& exported) {
  return [exported](const std::vector<Tensor>& inputs)
             -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<std::unique_ptr<baton_tensor>> wrapped;
    std::vector<const baton_tensor*> pointers;
    for (const Tensor& input : inputs) {
      wrapped.push_back(Wrap(input));
      pointers.push_back(wrapped.back().get());
    }
    baton_results results;
    exported.function(exported.context, pointers.data(),
                      static_cast<int>(pointers.size()), &results);
    RETURN_IF_ERROR(results.status);
    return std::move(results.outputs);
  };
}

absl::StatusOr<rpc::ClusterOptions> OptionsFor(
    const baton_join_options& options) {
  rpc::ClusterOptions cluster;
  if (options.rendezvous == nullptr) {
    ASSIGN_OR_RETURN(cluster,
                     tools::ClusterOptionsFromFlags(Text(options.name)));
  } else {
    cluster.rendezvous = options.rendezvous;
    cluster.world_size = options.world_size;
  }
  if (options.name != nullptr) cluster.name = options.name;
  NamedFunctions functions;
  for (int i = 0; i < options.exports_count; ++i)
    functions[options.exports[i].name] = FunctionOf(options.exports[i]);
  cluster.agent.on_start = [functions](rpc::Agent& agent) {
    AttachNamedFunctions(agent, functions);
  };
  return cluster;
}

absl::StatusOr<std::unique_ptr<baton_worker>> Join(
    const baton_join_options& options) {
  ASSIGN_OR_RETURN(rpc::ClusterOptions cluster, OptionsFor(options));
  rpc::Registry registry;
  RegisterNamedFunctions(registry);
  auto worker = std::make_unique<baton_worker>();
  ASSIGN_OR_RETURN(worker->agent,
                   rpc::JoinCluster(std::move(cluster), std::move(registry)));
  return worker;
}

}  // namespace
}  // namespace baton::c

using baton::c::Guarded;

const char* baton_error() { return baton::c::error.c_str(); }

baton_tensor* baton_tensor_new(int dtype, int dims, const int64_t* shape,
                               const void* elements) {
  return Guarded<baton_tensor*>(
      nullptr, [&]() -> absl::StatusOr<baton_tensor*> {
        ASSIGN_OR_RETURN(auto made,
                         baton::c::MakeTensor(dtype, dims, shape, elements));
        return made.release();
      });
}

void baton_tensor_free(baton_tensor* tensor) { delete tensor; }

int baton_tensor_dtype(const baton_tensor* tensor) {
  return static_cast<int>(tensor->tensor.dtype());
}

int baton_tensor_dims(const baton_tensor* tensor) {
  return tensor->tensor.rank();
}

int64_t baton_tensor_size(const baton_tensor* tensor, int dim) {
  return Guarded<int64_t>(-1, [&]() -> absl::StatusOr<int64_t> {
    if (dim >= 0 && dim < tensor->tensor.rank()) return tensor->tensor.dim(dim);
    return absl::OutOfRangeError(absl::StrCat("there is no dimension ", dim));
  });
}

int64_t baton_tensor_bytes(const baton_tensor* tensor) {
  return tensor->tensor.numel() *
         static_cast<int64_t>(baton::SizeOf(tensor->tensor.dtype()));
}

const void* baton_tensor_data(const baton_tensor* tensor) {
  return tensor->tensor.raw_data();
}

void baton_results_add(baton_results* results, const baton_tensor* output) {
  results->outputs.push_back(output->tensor);
}

void baton_results_fail(baton_results* results, const char* why) {
  results->status = absl::InternalError(baton::c::Text(why));
}

baton_worker* baton_join(const baton_join_options* options) {
  return Guarded<baton_worker*>(
      nullptr, [&]() -> absl::StatusOr<baton_worker*> {
        ASSIGN_OR_RETURN(auto worker, baton::c::Join(options == nullptr
                                                         ? baton_join_options{}
                                                         : *options));
        return worker.release();
      });
}

const char* baton_name(const baton_worker* worker) {
  return worker->agent->self().name.c_str();
}

int baton_call(baton_worker* worker, const char* to, const char* function,
               const baton_tensor* const* inputs, int inputs_count,
               baton_tensor** outputs, int room, double seconds) {
  return Guarded<int>(-1, [&]() -> absl::StatusOr<int> {
    const auto limit =
        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    ASSIGN_OR_RETURN(
        const std::vector<baton::Tensor> results,
        baton::c::CallNamed(
            *worker->agent, baton::c::Text(to), baton::c::Text(function),
            baton::c::TensorsOf(inputs, inputs_count), {.timeout = limit})
            .Await(baton::kNoLimit));
    if (results.size() > static_cast<size_t>(std::max(room, 0))) {
      return absl::ResourceExhaustedError(
          absl::StrCat(results.size(), " outputs, and room for ", room));
    }
    for (size_t i = 0; i < results.size(); ++i)
      outputs[i] = baton::c::Wrap(results[i]).release();
    return static_cast<int>(results.size());
  });
}

int baton_leave(baton_worker* worker) {
  return Guarded<int>(-1, [&]() -> absl::StatusOr<int> {
    const std::unique_ptr<baton_worker> ended(worker);
    RETURN_IF_ERROR(ended->agent->Shutdown());
    return 0;
  });
}
