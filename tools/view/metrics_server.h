// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace baton::tools {

// Serves GET /metrics over HTTP/1.1 for Prometheus until it is destroyed, and
// nothing else; reads no request body. There is no authentication: at another
// address than loopback, anybody who reaches it can read names and counts.
// Thread-safe.
class MetricsServer {
 public:
  virtual ~MetricsServer() = default;
};

// A port that is taken before its server runs, so that no other process gets
// it; connections wait meanwhile. Thread-compatible.
class MetricsPort {
 public:
  // Returns Unavailable, which names the address, if it cannot be listened on.
  // Port 0 takes a free one.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Make(
      const std::string& host, int port);
  virtual ~MetricsPort() = default;
  virtual std::string address() const = 0;  // "127.0.0.1:9400"
  // Starts the server; call this once. `text` is called on the server's threads
  // until the server is destroyed.
  virtual std::unique_ptr<MetricsServer> Serve(
      std::function<std::string()> text) = 0;
};

}  // namespace baton::tools
