// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace baton::rpc {

// A server of gRPC that is no worker and no rendezvous: keeps all that it is
// told, metadata too, and answers as the test says. Thread-safe.
class Impostor {
 public:
  struct Said {
    size_t call;  // 0 is the first
    std::string bytes;
  };
  struct Reply {
    std::string message = {};  // empty: none, unless the call ends with OK
    bool end = false;          // with `status`, behind the message
    absl::Status status = {};
    std::string proof = {};  // internal::kProofKey in the trailing metadata
  };
  // Called for each message that comes, not twice at once on one call.
  using Script = std::function<Reply(const Said& said)>;

  // `address` is "host:port" or "unix:path".
  Impostor(const std::string& address, Script script);
  ~Impostor();

  // Of one on a port.
  const std::string& address() const { return address_; }
  // In messages, and in keys and values of metadata.
  bool HasHeard(const std::string& what) const;
  // Whether so many messages have come before `limit` is over.
  bool AwaitMessages(size_t count, std::chrono::seconds limit) const;

 private:
  class Server;
  std::string address_;
  std::unique_ptr<Server> server_;
};

}  // namespace baton::rpc
