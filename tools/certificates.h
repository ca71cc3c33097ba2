// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Makes the certificates of one cluster and the authority that signs them.
namespace baton::tools {

// A certificate and its private key, as PEM texts.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

struct Validity {
  absl::Time from;
  absl::Time until;
};

// Makes an authority on the curve P-256, called "NAME certificate authority".
absl::StatusOr<CertificateAndKey> MakeAuthority(const std::string& name,
                                                const Validity& validity);
// Makes a key and its certificate, signed by `authority`, with `names` as DNS
// names, for both ends of a connection.
absl::StatusOr<CertificateAndKey> MakeCertificate(
    const CertificateAndKey& authority, const std::vector<std::string>& names,
    const Validity& validity);
// Returns 256 random bits as 64 hexadecimal digits.
absl::StatusOr<std::string> MakeToken();

// Writes the files that `workers`, a rendezvous and batonctl need into
// `folder`, which it makes if necessary: ca.pem, ca.key, token, and NAME.pem
// and NAME.key for each. Keeps an existing authority and token; replaces
// existing certificates. Only this user can read keys and token.
absl::Status WriteCertificates(const std::string& folder,
                               const std::vector<std::string>& workers,
                               const Validity& validity);

}  // namespace baton::tools
