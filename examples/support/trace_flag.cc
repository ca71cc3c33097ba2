// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/trace_flag.h"

#include "absl/flags/flag.h"
#include "core/status.h"
#include "tools/view/cluster_trace.h"

ABSL_FLAG(std::string, trace, "",
          "write a trace of one step or epoch at all workers, for "
          "ui.perfetto.dev; of several variants the last one stays");

namespace baton::examples {

absl::StatusOr<std::string> TracePathFromFlags() {
  const std::string path = absl::GetFlag(FLAGS_trace);
  if (!path.empty()) RETURN_IF_ERROR(tools::CheckTracePath(path));
  return path;
}

}  // namespace baton::examples
