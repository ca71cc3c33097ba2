// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"
#include "rpc/security.h"

namespace baton::rpc {

// OK when the texts of `security`, read from `files`, can serve a worker whose
// certificate must hold `name`; else FailedPrecondition with one line that
// names the file and the remedy. gRPC would say none of it.
absl::Status CheckCertificate(const SecurityFiles& files,
                              const Security& security,
                              const std::string& name);

}  // namespace baton::rpc
