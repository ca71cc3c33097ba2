// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/transports/address.h"

// What proves to the others of a cluster who a worker is, and whom it lets in;
// docs/security.md has the threat model.
namespace baton::rpc {

// Paths; an empty one stands for nothing.
struct SecurityFiles {
  std::string certificate;  // PEM: of this worker, then any in between
  std::string key;          // PEM: its private key
  std::string authority;    // PEM: who signs the certificates of the cluster
  std::string token;        // 64 hexadecimal digits
};

// The texts themselves. Without any, a worker talks in clear, and only within
// this machine.
struct Security {
  std::string certificate = {};
  std::string key = {};
  std::string authority = {};
  std::string token = {};
  // Talking in clear to other machines is wanted.
  bool insecure = false;
  // Whoever reads the network between the workers may do so: between two
  // workers that both say this, tensors go in clear even though the rest is
  // encrypted.
  bool trusted_fabric = false;

  // Certificate, key and authority are there.
  bool tls() const { return !certificate.empty(); }
};

// The name in the certificate of whoever runs a rendezvous of its own.
inline constexpr char kRendezvousName[] = "rendezvous";
// The name that the certificate of `worker` must hold, as a DNS name: its own;
// batonctl, which has another name each time, needs one for "batonctl".
std::string CertificateName(const std::string& worker);

// Reads the files and checks that they serve `worker`. Errors are one line that
// names the file and the remedy: one that cannot be read, a key or a token that
// other users may read, a certificate that has expired, is another worker's,
// or has another authority or another key.
absl::StatusOr<Security> LoadSecurity(const SecurityFiles& files,
                                      const std::string& worker);

// Whether two tokens, keys or proofs are the same, in a time that does not tell
// where they differ.
bool SameToken(const std::string& one, const std::string& other);

// Shows that its maker knows `token` without telling it: HMAC-SHA-256 of
// `parts`, each behind its length. The first part names the role of its maker,
// so that no proof can be used in another role; the others hold what both
// sides chose at random for this one time.
std::string ProveToken(const std::string& token,
                       std::initializer_list<std::string_view> parts);

// Unauthenticated: the two sides do not have the same token. `how` comes first,
// then the remedy.
absl::Status TokensDiffer(const std::string& how);

// InvalidArgument when `what` ("listens on", ...) concerns an address beyond
// this machine and nothing protects what would be said there.
absl::Status CheckExposure(const Security& security, const std::string& what,
                           const std::string& address,
                           Names names = Names::kResolve);

}  // namespace baton::rpc
