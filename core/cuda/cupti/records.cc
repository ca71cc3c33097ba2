// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/cupti/records.h"

namespace baton::cuda {
namespace {

const char* NameOfCopy(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy to the GPU";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy to the host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy on the GPU";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy between GPUs";
    default:
      return "copy";
  }
}

template <typename Record>
GpuActivityBuffer::Entry EntryOf(const Record& record, uint64_t bytes) {
  return {.device = static_cast<int>(record.deviceId),
          .stream = record.streamId,
          .bytes = bytes,
          .begin_ns = static_cast<int64_t>(record.start),
          .end_ns = static_cast<int64_t>(record.end)};
}

// A record begins with its kind, which determines its type.
template <typename Record>
const Record& As(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

}  // namespace

void AddRecord(const CUpti_Activity& record, GpuActivityBuffer& log) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = As<CUpti_ActivityKernel10>(record);
      return log.Add(kernel.name == nullptr ? "kernel" : kernel.name,
                     EntryOf(kernel, 0));
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = As<CUpti_ActivityMemcpy6>(record);
      return log.Add(NameOfCopy(copy.copyKind), EntryOf(copy, copy.bytes));
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = As<CUpti_ActivityMemcpyPtoP4>(record);
      return log.Add("copy between GPUs", EntryOf(copy, copy.bytes));
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = As<CUpti_ActivityMemset4>(record);
      return log.Add("fill", EntryOf(fill, fill.bytes));
    }
    default:
      return;
  }
}

}  // namespace baton::cuda
