// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace baton::tools {

// GET /metrics over HTTP/1.1, for Prometheus, until it is destroyed. Nothing
// else is served and no request body is read. Without authentication: on
// another address than loopback anybody who reaches it can read names and
// counts. Thread-safe.
class MetricsServer {
 public:
  virtual ~MetricsServer() = default;
};

// The port of a server to come: taken, so that nobody else gets it, while those
// who connect wait. Thread-compatible.
class MetricsPort {
 public:
  // Unavailable names an address that cannot be listened on; port 0 picks a
  // free one.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Make(
      const std::string& host, int port);
  virtual ~MetricsPort() = default;
  virtual std::string address() const = 0;  // "127.0.0.1:9400"
  // `text` is called on the server's threads, until it is destroyed. Once.
  virtual std::unique_ptr<MetricsServer> Serve(
      std::function<std::string()> text) = 0;
};

}  // namespace baton::tools
