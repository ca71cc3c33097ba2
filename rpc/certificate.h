// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "rpc/security.h"

namespace baton::rpc {

// Returns OK if the texts of `security`, read from `files`, are valid for a
// worker whose certificate must hold `name`. Else returns FailedPrecondition
// with one line that names the file and the remedy, neither of which gRPC would
// report.
absl::Status CheckCertificate(const SecurityFiles& files,
                              const Security& security,
                              const std::string& name);

}  // namespace baton::rpc
