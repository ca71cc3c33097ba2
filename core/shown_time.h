// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <string>

namespace baton {

// Formats a time for messages to people: "250 ms", "1.5 s", "300 s".
std::string ShownTime(std::chrono::milliseconds time);

}  // namespace baton
