// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/security.h"

// An etcd, in which several processes that may serve as the rendezvous
// (rpc/etcd/rendezvous_candidate.h) agree on one, and others find its address.
namespace baton::rpc::internal {

// The key whose value is the address of the rendezvous that serves.
inline constexpr char kRendezvousKey[] = "baton/rendezvous";

// "etcd://host:port,host:port,...": the nodes of one etcd. IsLocal and
// CheckExposure look at each of them.
bool IsEtcd(const std::string& address);
// Returns "host:port" of each node. InvalidArgument names what is wrong.
absl::StatusOr<std::vector<std::string>> NodesOfEtcd(
    const std::string& address);

// A client of an etcd. Each call asks one node and, if that fails or does not
// answer soon, the next ones too; the first answer counts. With certificates it
// talks TLS, to nodes whose certificate is for "etcd". Errors name the etcd and
// are Unavailable, Unauthenticated if no node agrees on TLS, or what etcd says.
// Thread-compatible.
class Etcd {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // As RendezvousConnection::Watch.
  using Watch = std::function<bool(std::function<void()> end)>;

  // Fails if an address is malformed or must not be talked to in clear.
  static absl::StatusOr<std::unique_ptr<Etcd>> Make(const std::string& address,
                                                    const Security& security);
  virtual ~Etcd() = default;

  // Returns the value of the key; NotFound if there is none.
  virtual absl::StatusOr<std::string> Get(const std::string& key,
                                          Deadline deadline,
                                          const Watch& watch = {}) = 0;
  // Makes a lease with the given id. Returns for how long etcd keeps it at
  // least, from when this was called.
  virtual absl::StatusOr<std::chrono::seconds> Grant(int64_t lease,
                                                     std::chrono::seconds ttl,
                                                     Deadline deadline) = 0;
  // The same for a lease that exists. NotFound once it has ended.
  virtual absl::StatusOr<std::chrono::seconds> KeepAlive(int64_t lease,
                                                         Deadline deadline) = 0;
  // Ends the lease, and with it its keys.
  virtual absl::Status Revoke(int64_t lease, Deadline deadline) = 0;
  // Makes a key that exists as long as the lease. AlreadyExists if it exists
  // with another lease.
  virtual absl::Status Create(const std::string& key, const std::string& value,
                              int64_t lease, Deadline deadline) = 0;
};

}  // namespace baton::rpc::internal
