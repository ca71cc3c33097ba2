// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "rpc/tracer.h"

namespace baton::rpc {

// Returns a tracer that, while it is on, also records what this process's GPUs
// run, as spans on tracks like "cuda:0 stream 7". Of several such tracers in
// one process only the first that is started records GPUs. If recording is not
// possible, the log's notes say why.
std::shared_ptr<Tracer> MakeTracerWithGpus();

}  // namespace baton::rpc
