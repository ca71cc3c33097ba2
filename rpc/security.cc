// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/security.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status.h"
#include "rpc/certificate.h"

namespace baton::rpc {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kTokenDigits = 64;
constexpr char kObserver[] = "batonctl";

absl::Status Wrong(const char* what, const std::string& path,
                   const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", path, ": ", why));
}

absl::Status CheckPrivate(const char* what, const std::string& path,
                          const struct stat& info) {
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return Wrong(what, path, "belongs to another user; make it your own");
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return Wrong(what, path,
               absl::StrFormat("other users may use it (mode %04o); say: "
                               "chmod 600 %s",
                               info.st_mode & 0777, path));
}

absl::StatusOr<std::string> ReadAll(int fd, const char* what,
                                    const std::string& path) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxFileBytes) {
      return Wrong(what, path, "is larger than any such file; is it the one?");
    }
  }
  if (n < 0) return Wrong(what, path, std::strerror(errno));
  return text;
}

// Checks and reads the same open file, even if the path is replaced meanwhile.
absl::StatusOr<std::string> ReadFile(const char* what, const std::string& path,
                                     bool is_private) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Wrong(what, path,
                 absl::StrCat("cannot be read: ", std::strerror(errno),
                              "; baton-certs makes what a cluster needs"));
  }
  struct stat info {};
  absl::Status status;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = Wrong(what, path, "is no file");
  } else if (is_private) {
    status = CheckPrivate(what, path, info);
  }
  auto text = status.ok() ? ReadAll(fd, what, path) : status;
  close(fd);
  return text;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadFile("token file", path, true));
  std::string token(absl::StripAsciiWhitespace(text));
  absl::AsciiStrToLower(&token);
  if (token.size() == kTokenDigits &&
      std::all_of(token.begin(), token.end(), absl::ascii_isxdigit)) {
    return token;
  }
  return Wrong("token file", path,
               absl::StrCat("holds no token, which is ", kTokenDigits,
                            " hexadecimal digits; baton-certs or `openssl rand "
                            "-hex 32` makes one"));
}

absl::Status CheckFiles(const SecurityFiles& files) {
  const bool any = !files.certificate.empty() || !files.key.empty() ||
                   !files.authority.empty();
  const bool all = !files.certificate.empty() && !files.key.empty() &&
                   !files.authority.empty();
  if (any == all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "TLS needs a certificate, its key and the authority: give --tls_cert, "
      "--tls_key and --tls_ca together");
}

}  // namespace

std::string CertificateName(const std::string& worker) {
  const std::string prefix = absl::StrCat(kObserver, "-");
  return absl::StartsWith(worker, prefix) ? kObserver : worker;
}

absl::StatusOr<Security> LoadSecurity(const SecurityFiles& files,
                                      const std::string& worker) {
  RETURN_IF_ERROR(CheckFiles(files));
  Security security;
  if (!files.token.empty()) {
    ASSIGN_OR_RETURN(security.token, ReadToken(files.token));
  }
  if (files.certificate.empty()) return security;
  ASSIGN_OR_RETURN(security.certificate,
                   ReadFile("certificate", files.certificate, false));
  ASSIGN_OR_RETURN(security.key, ReadFile("key", files.key, true));
  ASSIGN_OR_RETURN(security.authority,
                   ReadFile("authority", files.authority, false));
  RETURN_IF_ERROR(CheckCertificate(files, security, CertificateName(worker)));
  return security;
}

bool SameToken(const std::string& one, const std::string& other) {
  return one.size() == other.size() &&
         CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string ProveToken(const std::string& token,
                       std::initializer_list<std::string_view> parts) {
  std::string said;
  for (const std::string_view part : parts) {
    for (int shift = 0; shift < 64; shift += 8)
      said.push_back(static_cast<char>(uint64_t{part.size()} >> shift));
    said += part;
  }
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  BATON_CHECK(HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                   reinterpret_cast<const unsigned char*>(said.data()),
                   said.size(), mac, &bytes) != nullptr);
  return {reinterpret_cast<const char*>(mac), bytes};
}

absl::Status TokensDiffer(const std::string& how) {
  return absl::UnauthenticatedError(absl::StrCat(
      how, "; give all workers of the cluster the same --cluster_token_file"));
}

absl::Status CheckExposure(const Security& security, const std::string& what,
                           const std::string& address, Names names) {
  if (security.tls() || security.insecure || IsLocal(address, names)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", address,
      ", beyond this machine, and nothing protects what is said there: give "
      "--tls_dir=FOLDER, which baton-certs makes, or --tls_cert, --tls_key and "
      "--tls_ca; or --insecure, to go without"));
}

}  // namespace baton::rpc
