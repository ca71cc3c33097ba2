// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

namespace baton::examples {

// A span of a worker's trace, in microseconds of the clock of all.
struct TracedSpan {
  std::string worker, track, name;
  double begin = 0, end = 0;
  double within = 0;  // how well the worker's clock is known
};

// The spans of a trace that a program has written, by their begin.
std::vector<TracedSpan> SpansOf(const std::string& path);

// Those of a worker whose name begins so.
std::vector<TracedSpan> SpansNamed(const std::vector<TracedSpan>& spans,
                                   const std::string& worker,
                                   const std::string& name);

}  // namespace baton::examples
