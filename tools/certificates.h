// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// The certificates of one cluster: an authority of its own, and what it signs.
namespace baton::tools {

// PEM texts that belong together.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

struct Validity {
  absl::Time from;
  absl::Time until;
};

// A new authority on the curve P-256, called "NAME certificate authority".
absl::StatusOr<CertificateAndKey> MakeAuthority(const std::string& name,
                                                const Validity& validity);
// A new key, and its certificate for `names` as DNS names, good for both ends
// of a connection, signed by `authority`.
absl::StatusOr<CertificateAndKey> MakeCertificate(
    const CertificateAndKey& authority, const std::vector<std::string>& names,
    const Validity& validity);
// 256 random bits as 64 hexadecimal digits.
absl::StatusOr<std::string> MakeToken();

// Writes into `folder`, which it makes if need be, what `workers` and a
// rendezvous and batonctl beside them need: ca.pem, ca.key, token, and NAME.pem
// and NAME.key for each. An authority and a token that are there are kept, and
// certificates that are there are made anew. Keys and token are for this user
// only.
absl::Status WriteCertificates(const std::string& folder,
                               const std::vector<std::string>& workers,
                               const Validity& validity);

}  // namespace baton::tools
