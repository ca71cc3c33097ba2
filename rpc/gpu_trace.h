// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/tracer.h"

namespace baton::rpc {

// A tracer that keeps, while it is on, also what this process's GPUs run: spans
// on tracks like "cuda:0 stream 7". Of several in one process the first that is
// started has it. Where it cannot be had, the log's notes say why.
std::shared_ptr<Tracer> MakeTracerWithGpus();

}  // namespace baton::rpc
