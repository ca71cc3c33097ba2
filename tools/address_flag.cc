// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/address_flag.h"

#include <cstdlib>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/etcd/etcd.h"
#include "rpc/transports/address.h"

namespace baton::tools {

absl::Status CheckAddressFlag(const absl::Flag<std::string>& flag,
                              const char* variable) {
  std::string address = absl::GetFlag(flag);
  std::string from =
      absl::StrCat("--", absl::GetFlagReflectionHandle(flag).Name());
  if (address.empty() && variable != nullptr) {
    const char* value = std::getenv(variable);
    address = value == nullptr ? "" : value;
    from = variable;
  }
  if (address.empty() || absl::StartsWith(address, "unix:"))
    return absl::OkStatus();
  if (rpc::internal::IsEtcd(address))
    return Annotate(rpc::internal::NodesOfEtcd(address).status(), from);
  return Annotate(rpc::ParseHostPort(address).status(), from);
}

}  // namespace baton::tools
