// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/security.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/rpc/certificates.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;

constexpr char kDigits[] =
    "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

class SecurityTest : public ::testing::Test {
 protected:
  // For nobody but this user, as baton-certs writes them.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.Write(name, text);
    chmod(path.c_str(), 0600);
    return path;
  }
  SecurityFiles Files(const tools::CertificateAndKey& own,
                      const TestAuthority& authority) {
    return {.certificate = Write("own.pem", own.certificate),
            .key = Write("own.key", own.key),
            .authority = Write("ca.pem", authority.own().certificate),
            .token = {}};
  }

  baton::testing::TempFolder folder_;
  TestAuthority authority_;
};

TEST_F(SecurityTest, ReadsWhatFitsTogether) {
  SecurityFiles files = Files(authority_.Sign({"alice"}), authority_);
  files.token = Write("token", std::string(kDigits) + "\n");
  const auto security = LoadSecurity(files, "alice");
  ASSERT_THAT(security, IsOk());
  EXPECT_TRUE(security->tls());
  EXPECT_EQ(security->token.size(), 64u);
  EXPECT_FALSE(security->insecure);
  const auto none = LoadSecurity({}, "alice");
  ASSERT_THAT(none, IsOk());
  EXPECT_FALSE(none->tls());
}

TEST_F(SecurityTest, ACertificateMayBeForSeveralWorkersAndForBatonctl) {
  const SecurityFiles files =
      Files(authority_.Sign({"alice", "bob", "batonctl"}), authority_);
  EXPECT_THAT(LoadSecurity(files, "bob"), IsOk());
  EXPECT_THAT(LoadSecurity(files, "batonctl-4711"), IsOk());
  EXPECT_THAT(LoadSecurity(files, "bob-4711"),
              Fails(StatusCode::kFailedPrecondition, "not for bob-4711"));
}

TEST_F(SecurityTest, ACertificateThatOthersWouldRefuseIsNamedAtOnce) {
  const auto with = [&](const tools::CertificateAndKey& own,
                        const TestAuthority& authority) {
    return LoadSecurity(Files(own, authority), "alice");
  };
  const std::string path = folder_ / "own.pem";
  EXPECT_THAT(with(authority_.Sign({"alice"}, Expired()), authority_),
              Fails(StatusCode::kFailedPrecondition, path + ": expired on"));
  const tools::Validity later{absl::Now() + absl::Hours(1),
                              absl::Now() + absl::Hours(2)};
  EXPECT_THAT(with(authority_.Sign({"alice"}, later), authority_),
              Fails(StatusCode::kFailedPrecondition, "is good only from"));
  EXPECT_THAT(with(authority_.Sign({"bob"}), authority_),
              Fails(StatusCode::kFailedPrecondition,
                    path + ": is for bob, not for alice"));
  EXPECT_THAT(with(authority_.Sign({}), authority_),
              Fails(StatusCode::kFailedPrecondition, "is for nobody"));
  const TestAuthority other;
  EXPECT_THAT(with(authority_.Sign({"alice"}), other),
              Fails(StatusCode::kFailedPrecondition,
                    "by the authority " + (folder_ / "ca.pem")));
  tools::CertificateAndKey mixed = authority_.Sign({"alice"});
  mixed.key = authority_.Sign({"alice"}).key;
  EXPECT_THAT(with(mixed, authority_),
              Fails(StatusCode::kFailedPrecondition,
                    (folder_ / "own.key") + ": is not the key of " + path));
}

TEST_F(SecurityTest, FilesThatAreNoneAreNamed) {
  const SecurityFiles good = Files(authority_.Sign({"alice"}), authority_);
  const std::string garbage = Write("garbage", "-----BEGIN NONSENSE-----\n");
  for (auto file : {&SecurityFiles::certificate, &SecurityFiles::key,
                    &SecurityFiles::authority, &SecurityFiles::token}) {
    SecurityFiles files = good;
    files.*file = folder_ / "missing";
    EXPECT_THAT(LoadSecurity(files, "alice"),
                Fails(StatusCode::kFailedPrecondition,
                      (folder_ / "missing") + ": cannot be read: No such"));
    files.*file = garbage;
    EXPECT_THAT(LoadSecurity(files, "alice"),
                Fails(StatusCode::kFailedPrecondition, garbage + ": holds no"));
    files.*file = folder_.path();
    EXPECT_THAT(LoadSecurity(files, "alice"),
                Fails(StatusCode::kFailedPrecondition, "is no file"));
  }
  SecurityFiles half = good;
  half.authority.clear();
  EXPECT_THAT(LoadSecurity(half, "alice"),
              Fails(StatusCode::kInvalidArgument, "--tls_ca together"));
}

TEST_F(SecurityTest, KeysAndTokensThatOthersMayReadAreRefused) {
  SecurityFiles files = Files(authority_.Sign({"alice"}), authority_);
  files.token = Write("token", kDigits);
  for (const std::string& path : {files.key, files.token}) {
    for (const mode_t mode : {0640, 0604, 0660, 0601}) {
      ASSERT_EQ(chmod(path.c_str(), mode), 0);
      EXPECT_THAT(
          LoadSecurity(files, "alice"),
          Fails(StatusCode::kFailedPrecondition, "say: chmod 600 " + path));
    }
    ASSERT_EQ(chmod(path.c_str(), 0400), 0);
    EXPECT_THAT(LoadSecurity(files, "alice"), IsOk());
  }
}

TEST_F(SecurityTest, OnlyA256BitTokenIsOne) {
  for (const std::string& bad :
       {std::string(), std::string(kDigits).substr(1),
        std::string(kDigits) + "0", std::string(64, 'g')}) {
    SecurityFiles files;
    files.token = Write("token", bad);
    EXPECT_THAT(LoadSecurity(files, "alice"),
                Fails(StatusCode::kFailedPrecondition, "openssl rand -hex 32"))
        << bad;
  }
  const std::string token(kDigits);
  EXPECT_TRUE(SameToken(token, token));
  EXPECT_FALSE(SameToken(token, token.substr(1)));
  EXPECT_FALSE(SameToken(token, ""));
  EXPECT_FALSE(SameToken(token, std::string(64, '0')));
}

TEST_F(SecurityTest, BeyondThisMachineSomethingMustProtect) {
  for (const char* local : {"127.0.0.1:1", "127.3.2.1:0", "[::1]:5",
                            "unix:/tmp/s", "127.0.0.1:1;unix:/tmp/s"}) {
    EXPECT_THAT(CheckExposure({}, "it listens on", local), IsOk()) << local;
  }
  for (const std::string open : {"0.0.0.0:0", "[::]:0", "10.0.0.1:2900",
                                 "[2001:db8::1]:5", "no-such-host.invalid:5"}) {
    EXPECT_THAT(CheckExposure({}, "it listens on", open),
                Fails(StatusCode::kInvalidArgument,
                      "it listens on " + open + ", beyond this machine"));
    // A token travels in clear where there is no TLS.
    EXPECT_FALSE(CheckExposure({.token = kDigits}, "", open).ok());
    EXPECT_THAT(CheckExposure({.insecure = true}, "", open), IsOk());
    EXPECT_THAT(CheckExposure(authority_.For("alice"), "", open), IsOk());
  }
}

}  // namespace
}  // namespace baton::rpc
