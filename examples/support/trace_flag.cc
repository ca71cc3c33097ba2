// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/trace_flag.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, trace, "",
          "write a trace of one step or epoch at all workers, for "
          "ui.perfetto.dev; of several variants the last one stays");
