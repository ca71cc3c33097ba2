// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace baton::tools {

// GET /metrics over HTTP/1.1, for Prometheus. Nothing else is served and no
// request body is read. Without authentication: on another address than
// loopback anybody who reaches it can read names and counts. Thread-safe.
class MetricsServer {
 public:
  // `text` is called on the server's threads, until it is destroyed.
  // Unavailable names an address that cannot be listened on; port 0 picks a
  // free one.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Make(
      const std::string& host, int port, std::function<std::string()> text);
  virtual ~MetricsServer() = default;
  virtual std::string address() const = 0;  // "127.0.0.1:9400"
};

}  // namespace baton::tools
