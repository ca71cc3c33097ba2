// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_split.h"
#include "core/device.h"
#include "core/status.h"
#include "rpc/cluster.h"
#include "rpc/security.h"
#include "rpc/transports/address.h"
#include "rpc/worker.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tools/command_line.h"
#include "tools/daemon.h"

// Addresses, flags and PEM files.
namespace baton::fuzz {

bool Words(const std::string& bytes) {
  const auto address = rpc::ParseHostPort(bytes);
  if (address.ok()) {
    const auto again = rpc::ParseHostPort(rpc::ToString(*address));
    BATON_CHECK(again.ok() && again->host == address->host &&
                again->port == address->port);
  }
  const auto workers = rpc::ParseWorkerList(bytes);
  if (workers.ok()) {
    BATON_CHECK(!workers->empty());
    for (const rpc::WorkerInfo& worker : *workers) {
      BATON_CHECK(rpc::CheckWorkerName(worker.name).ok());
    }
  }
  (void)rpc::DialTargets(bytes);
  const auto device = Device::Parse(bytes);
  BATON_CHECK(!device.ok() || *Device::Parse(device->ToString()) == *device);
  const bool cores = bytes.size() < 64 && tools::ParseCores(bytes).ok();
  (void)tools::ReadFlags(absl::StrSplit(bytes, '\n'));
  return address.ok() || workers.ok() || device.ok() || cores;
}

bool Certificates(const std::string& bytes) {
  Input input(bytes);
  rpc::Security security;
  security.certificate = input.Chunk();
  security.key = input.Chunk();
  security.authority = input.Rest();
  return rpc::CheckCertificate({"own.pem", "own.key", "ca.pem", ""}, security,
                               "alice")
      .ok();
}

}  // namespace baton::fuzz
