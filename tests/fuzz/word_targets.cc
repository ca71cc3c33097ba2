// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_split.h"
#include "core/device.h"
#include "core/status.h"
#include "rpc/certificate.h"
#include "rpc/rendezvous.h"
#include "rpc/transports/address.h"
#include "rpc/worker.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tools/command_line.h"
#include "tools/daemon.h"

// Addresses, flags and PEM files.
namespace baton::fuzz {

void Words(const std::string& bytes) {
  if (const auto address = rpc::ParseHostPort(bytes); address.ok()) {
    const auto again = rpc::ParseHostPort(rpc::ToString(*address));
    BATON_CHECK(again.ok() && again->host == address->host &&
                again->port == address->port);
  }
  if (const auto workers = rpc::ParseWorkerList(bytes); workers.ok()) {
    BATON_CHECK(!workers->empty());
    for (const rpc::WorkerInfo& worker : *workers) {
      BATON_CHECK(rpc::CheckWorkerName(worker.name).ok());
    }
  }
  (void)rpc::DialTargets(bytes);
  if (const auto device = Device::Parse(bytes); device.ok()) {
    BATON_CHECK(*Device::Parse(device->ToString()) == *device);
  }
  if (bytes.size() < 64) (void)tools::ParseCores(bytes);
  (void)tools::ReadFlags(absl::StrSplit(bytes, '\n'));
}

void Certificates(const std::string& bytes) {
  Input input(bytes);
  rpc::Security security;
  security.certificate = input.Chunk();
  security.key = input.Chunk();
  security.authority = input.Rest();
  (void)rpc::CheckCertificate({"own.pem", "own.key", "ca.pem", ""}, security,
                              "alice");
}

}  // namespace baton::fuzz
