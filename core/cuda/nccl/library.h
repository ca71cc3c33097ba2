// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <nccl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton::cuda {

// The functions of NCCL's library that are used. It is opened when it is first
// needed, because it is large; machines without it run everything else.
// Immutable.
struct Nccl {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
  decltype(&ncclCommInitRankConfig) init;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclReduce) reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  std::string version;

  // Returns OK also for work in progress; otherwise Unavailable with NCCL's
  // words, after "NCCL: `what`: ". `comm` may be null.
  absl::Status StatusOf(const char* what, ncclResult_t result,
                        ncclComm_t comm) const;
};

// Opens the library at the first call. FailedPrecondition says what is missing.
const absl::StatusOr<Nccl>& OpenNccl();

}  // namespace baton::cuda
