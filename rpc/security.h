// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/transports/address.h"

// How the workers of a cluster authenticate each other. docs/security.md has
// the threat model.
namespace baton::rpc {

// Paths of files; an empty path means that there is none.
struct SecurityFiles {
  std::string certificate;  // PEM: this worker's, then any intermediate ones
  std::string key;          // PEM: its private key
  std::string authority;    // PEM: the CA of the cluster's certificates
  std::string token;        // 64 hexadecimal digits
};

// The contents of these files. Without any, a worker communicates unencrypted
// and only within this machine.
struct Security {
  std::string certificate = {};
  std::string key = {};
  std::string authority = {};
  std::string token = {};
  // Unencrypted communication with other machines is allowed.
  bool insecure = false;
  // Whoever reads the network between the workers may do so: between two
  // workers that both say this, tensors go in clear even though the rest is
  // encrypted.
  bool trusted_fabric = false;

  // Certificate, key and authority are set.
  bool tls() const { return !certificate.empty(); }
};

// The name in the certificate of a process that runs a stand-alone rendezvous.
inline constexpr char kRendezvousName[] = "rendezvous";
// The DNS name that the certificate of `worker` must hold: the worker's own
// name, or "batonctl" for batonctl, whose worker name is different each time.
std::string CertificateName(const std::string& worker);

// Reads the files and checks that they are valid for `worker`. Errors are one
// line that names the file and the remedy. It is an error if a file cannot be
// read, if other users may read the key or the token, or if the certificate has
// expired or does not match the worker's name, the authority or the key.
absl::StatusOr<Security> LoadSecurity(const SecurityFiles& files,
                                      const std::string& worker);

// Returns random bytes, for a key or a nonce.
inline constexpr size_t kKeyBytes = 16;
absl::StatusOr<std::string> NewKey();
// Compares two tokens, keys or proofs in constant time.
bool SameToken(const std::string& one, const std::string& other);

// Returns a proof that its maker knows `token`, without revealing it: the
// HMAC-SHA-256 of `parts`, each preceded by its length. The first part names
// the maker's role, so that a proof cannot be used in another role. The other
// parts hold random values that both sides chose for this occasion.
std::string ProveToken(const std::string& token,
                       std::initializer_list<std::string_view> parts);

// Returns Unauthenticated: the two sides do not have the same token. The text
// is `how`, then the remedy.
absl::Status TokensDiffer(const std::string& how);

// Returns InvalidArgument if `address` is beyond this machine and communication
// there would be unencrypted without permission. `what` ("listens on", ...)
// begins the error text.
absl::Status CheckExposure(const Security& security, const std::string& what,
                           const std::string& address,
                           Names names = Names::kResolve);

// Returns OK if the texts of `security`, read from `files`, are valid for a
// worker whose certificate must hold `name`. Else returns FailedPrecondition
// with one line that names the file and the remedy, neither of which gRPC would
// report.
absl::Status CheckCertificate(const SecurityFiles& files,
                              const Security& security,
                              const std::string& name);

}  // namespace baton::rpc
