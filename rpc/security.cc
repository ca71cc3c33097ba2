// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/security.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/free_with.h"
#include "core/status.h"

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

absl::StatusOr<std::string> NewKey() {
  std::string key(kKeyBytes, '\0');
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(kKeyBytes)) {
    return absl::UnavailableError("this machine gives no random bytes");
  }
  return key;
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

namespace {

void FreeNames(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
void FreeChain(STACK_OF(X509) * chain) { sk_X509_free(chain); }

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, FreeWith<X509_free>>;
using Store = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using StoreContext =
    std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, FreeWith<FreeNames>>;
using Chain = std::unique_ptr<STACK_OF(X509), FreeWith<FreeChain>>;

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<Cert> Certificates(const std::string& pem) {
  std::vector<Cert> certificates;
  const Bio bio = BioOf(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  ERR_clear_error();  // the end of the text
  return certificates;
}

// Never asks the terminal for a password.
int NoPassword(char*, int, int, void*) { return -1; }

Key KeyOf(const std::string& pem) {
  const Bio bio = BioOf(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::vector<std::string> NamesIn(X509* certificate) {
  std::vector<std::string> result;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get());
       ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const ASN1_STRING* text = name->d.dNSName;
    result.emplace_back(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
        static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return result;
}

std::string DateOf(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

absl::Status CheckDates(const std::string& path, X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return Wrong(
        "certificate", path,
        absl::StrCat("expired on ", DateOf(X509_get0_notAfter(certificate)),
                     "; make a new one, as with baton-certs"));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return Wrong("certificate", path,
                 absl::StrCat("is good only from ",
                              DateOf(X509_get0_notBefore(certificate)),
                              " on; is the clock right?"));
  }
  return absl::OkStatus();
}

// Verifies the certificate as the other side will, in both roles of a worker.
absl::Status CheckSigned(const SecurityFiles& files,
                         const std::vector<Cert>& own,
                         const std::vector<Cert>& authorities) {
  const Store store(X509_STORE_new());
  for (const Cert& authority : authorities) {
    X509_STORE_add_cert(store.get(), authority.get());
  }
  const Chain between(sk_X509_new_null());
  for (const Cert& certificate : own) {
    sk_X509_push(between.get(), certificate.get());
  }
  for (const char* role : {"ssl_server", "ssl_client"}) {
    const StoreContext context(X509_STORE_CTX_new());
    X509_STORE_CTX_init(context.get(), store.get(), own[0].get(),
                        between.get());
    X509_STORE_CTX_set_default(context.get(), role);
    if (X509_verify_cert(context.get()) == 1) continue;
    const int error = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    return Wrong("certificate", files.certificate,
                 absl::StrCat("is refused as ", role, " by the authority ",
                              files.authority, ": ",
                              X509_verify_cert_error_string(error),
                              "; all workers need certificates of the one "
                              "authority, as baton-certs makes them"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCertificate(const SecurityFiles& files,
                              const Security& security,
                              const std::string& name) {
  const std::vector<Cert> own = Certificates(security.certificate);
  if (own.empty()) {
    return Wrong("certificate", files.certificate,
                 "holds no PEM certificate; is it the right file?");
  }
  const Key key = KeyOf(security.key);
  if (key == nullptr) {
    return Wrong("key", files.key,
                 "holds no PEM private key without a password");
  }
  const std::vector<Cert> authorities = Certificates(security.authority);
  if (authorities.empty()) {
    return Wrong("authority", files.authority,
                 "holds no PEM certificate; is it the right file?");
  }
  const bool pair = X509_check_private_key(own[0].get(), key.get()) == 1;
  ERR_clear_error();
  if (!pair) {
    return Wrong("key", files.key,
                 absl::StrCat("is not the key of ", files.certificate,
                              "; give the two that were made together"));
  }
  RETURN_IF_ERROR(CheckDates(files.certificate, own[0].get()));
  RETURN_IF_ERROR(CheckSigned(files, own, authorities));
  const std::vector<std::string> names = NamesIn(own[0].get());
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return Wrong(
        "certificate", files.certificate,
        absl::StrCat("is for ",
                     names.empty() ? "nobody" : absl::StrJoin(names, ", "),
                     ", not for ", name,
                     "; make one for that name, as with baton-certs"));
  }
  return absl::OkStatus();
}

}  // namespace baton::rpc
