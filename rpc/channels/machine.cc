// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/channels/machine.h"

#include <sys/random.h>

#include <fstream>

namespace baton::rpc {
namespace {

constexpr size_t kKeyBytes = 16;

}  // namespace

absl::StatusOr<std::string> BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.empty()) {
    return absl::UnavailableError("this machine has no boot id");
  }
  return id;
}

absl::StatusOr<std::string> NewKey() {
  std::string key(kKeyBytes, '\0');
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(kKeyBytes)) {
    return absl::UnavailableError("this machine gives no random bytes");
  }
  return key;
}

}  // namespace baton::rpc
