// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "rpc/debug_info.h"

namespace baton::tools {

// The resources that a process uses, from /proc.
struct ProcessUse {
  int64_t resident_bytes = 0;
  int64_t open_files = 0;
};
ProcessUse UseOfThisProcess();

// Returns a worker's figures in Prometheus' text format 0.0.4. Every name
// begins with baton_ (docs/observability.md lists them) or process_. Durations
// are histograms in seconds, with bounds at powers of two microseconds.
std::string PrometheusText(const rpc::DebugInfo& info, const ProcessUse& use);

}  // namespace baton::tools
