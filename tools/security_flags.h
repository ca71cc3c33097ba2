// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/security.h"

// The flags that say how a program proves who it is (docs/security.md):
//   --tls_dir --tls_cert --tls_key --tls_ca --cluster_token_file --insecure
//   --trusted_fabric
// Those not given come from BATON_TLS_DIR, BATON_TLS_CERT, BATON_TLS_KEY,
// BATON_TLS_CA, BATON_CLUSTER_TOKEN_FILE, BATON_INSECURE=1 and
// BATON_TRUSTED_FABRIC=on, which baton-run hands on. {name} in a path stands
// for the name of the worker.
namespace baton::tools {

// After absl::ParseCommandLine, for a program whose certificate is to hold
// `name`.
absl::StatusOr<rpc::Security> SecurityFromFlags(const std::string& name);

// The environment in which the same flags hold for other programs.
std::map<std::string, std::string> SecurityEnvironment();

}  // namespace baton::tools
