// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/security.h"
#include "tools/certificates.h"

namespace baton::rpc {

inline tools::Validity GoodNow() {
  return {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)};
}
inline tools::Validity Expired() {
  return {absl::Now() - absl::Hours(2), absl::Now() - absl::Hours(1)};
}

// A certificate authority, and what workers hold that it signed for.
class TestAuthority {
 public:
  TestAuthority() : authority_(Made(tools::MakeAuthority("Test", GoodNow()))) {}

  const tools::CertificateAndKey& own() const { return authority_; }
  tools::CertificateAndKey Sign(
      const std::vector<std::string>& names,
      const tools::Validity& validity = GoodNow()) const {
    return Made(tools::MakeCertificate(authority_, names, validity));
  }
  Security For(const std::string& name,
               const tools::Validity& validity = GoodNow()) const {
    const tools::CertificateAndKey made = Sign({name}, validity);
    return {.certificate = made.certificate,
            .key = made.key,
            .authority = authority_.certificate};
  }

 private:
  static tools::CertificateAndKey Made(
      absl::StatusOr<tools::CertificateAndKey> made) {
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  const tools::CertificateAndKey authority_;
};

}  // namespace baton::rpc
