// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "rpc/security.h"

// The flags by which a program authenticates itself and others
// (docs/security.md):
//   --tls_dir --tls_cert --tls_key --tls_ca --cluster_token_file --insecure
//   --trusted_fabric
// The defaults are BATON_TLS_DIR, BATON_TLS_CERT, BATON_TLS_KEY, BATON_TLS_CA,
// BATON_CLUSTER_TOKEN_FILE, BATON_INSECURE=1 and BATON_TRUSTED_FABRIC=on, which
// baton-run passes on. {name} in a path stands for the name of the worker.
namespace baton::tools {

// Reads the parsed flags of a program whose certificate must contain `name`.
absl::StatusOr<rpc::Security> SecurityFromFlags(const std::string& name);

// Returns the environment variables that give other programs the same values.
std::map<std::string, std::string> SecurityEnvironment();

}  // namespace baton::tools
