// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/certificates.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/free_with.h"
#include "core/status.h"
#include "rpc/security.h"
#include "rpc/worker.h"

namespace baton::tools {
namespace {

using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, FreeWith<X509_free>>;
using Extension =
    std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;

absl::Status OpenSslFailure(const char* what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

CertificateAndKey ToPem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate);
  const Bio key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr,
                           nullptr);
  return {TextOf(certificate_text.get()), TextOf(key_text.get())};
}

// Returns a certificate with subject, validity and a random serial number.
absl::StatusOr<Cert> Blank(const std::string& name, EVP_PKEY* key,
                           const Validity& validity) {
  Cert certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) {
    return OpenSslFailure("no random numbers");
  }
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()),
                absl::ToTimeT(validity.from));
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()),
                absl::ToTimeT(validity.until));
  X509_set_pubkey(certificate.get(), key);
  const std::string common = name.substr(0, 64);  // X.509 allows no more
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1, 0);
  return certificate;
}

absl::Status Extend(X509* certificate, X509* issuer, int kind,
                    const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (extension == nullptr ||
      X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpenSslFailure("a certificate's extension");
  }
  return absl::OkStatus();
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailure("cannot make a key");
  return key;
}

absl::Status Sign(X509* certificate, EVP_PKEY* key) {
  return X509_sign(certificate, key, EVP_sha256()) > 0
             ? absl::OkStatus()
             : OpenSslFailure("cannot sign a certificate");
}

struct Issuer {
  Cert certificate;
  Key key;
};

absl::StatusOr<Issuer> IssuerOf(const CertificateAndKey& pem) {
  const Bio certificate(BIO_new_mem_buf(
      pem.certificate.data(), static_cast<int>(pem.certificate.size())));
  const Bio key(
      BIO_new_mem_buf(pem.key.data(), static_cast<int>(pem.key.size())));
  Issuer issuer{
      Cert(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr)),
      Key(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr))};
  if (issuer.certificate == nullptr || issuer.key == nullptr ||
      X509_check_private_key(issuer.certificate.get(), issuer.key.get()) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(
        "the authority's certificate and key are not a pair");
  }
  return issuer;
}

absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode) {
  const std::string part = path + ".part";
  unlink(part.c_str());
  const int fd =
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) ==
                                      static_cast<ssize_t>(text.size());
  const bool closed = fd >= 0 && close(fd) == 0;
  if (written && closed && rename(part.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

absl::StatusOr<CertificateAndKey> AuthorityIn(const std::string& folder,
                                              const Validity& validity) {
  const std::string certificate = folder + "/ca.pem";
  const std::string key = folder + "/ca.key";
  if (Exists(certificate) && Exists(key)) {
    return CertificateAndKey{ReadText(certificate), ReadText(key)};
  }
  if (Exists(certificate)) {
    return absl::FailedPreconditionError(
        absl::StrCat(certificate, " is there, but not its key ", key,
                     ", without which it signs nothing; take another folder"));
  }
  ASSIGN_OR_RETURN(CertificateAndKey made, MakeAuthority("Baton", validity));
  RETURN_IF_ERROR(WriteFile(key, made.key, 0600));
  RETURN_IF_ERROR(WriteFile(certificate, made.certificate, 0644));
  return made;
}

}  // namespace

absl::StatusOr<CertificateAndKey> MakeAuthority(const std::string& name,
                                                const Validity& validity) {
  ASSIGN_OR_RETURN(const Key key, NewKey());
  ASSIGN_OR_RETURN(
      const Cert certificate,
      Blank(absl::StrCat(name, " certificate authority"), key.get(), validity));
  X509* self = certificate.get();
  X509_set_issuer_name(self, X509_get_subject_name(self));
  RETURN_IF_ERROR(
      Extend(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(Extend(self, self, NID_key_usage, "critical,keyCertSign"));
  RETURN_IF_ERROR(Extend(self, self, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(Sign(self, key.get()));
  return ToPem(self, key.get());
}

absl::StatusOr<CertificateAndKey> MakeCertificate(
    const CertificateAndKey& authority, const std::vector<std::string>& names,
    const Validity& validity) {
  ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  ASSIGN_OR_RETURN(const Key key, NewKey());
  ASSIGN_OR_RETURN(
      const Cert certificate,
      Blank(names.empty() ? "nobody" : names[0], key.get(), validity));
  X509* made = certificate.get();
  X509* by = issuer.certificate.get();
  X509_set_issuer_name(made, X509_get_subject_name(by));
  RETURN_IF_ERROR(Extend(made, by, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(Extend(made, by, NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(Extend(made, by, NID_ext_key_usage, "serverAuth,clientAuth"));
  RETURN_IF_ERROR(Extend(made, by, NID_authority_key_identifier, "keyid"));
  if (!names.empty()) {
    RETURN_IF_ERROR(
        Extend(made, by, NID_subject_alt_name,
               absl::StrCat("DNS:", absl::StrJoin(names, ",DNS:"))));
  }
  RETURN_IF_ERROR(Sign(made, issuer.key.get()));
  return ToPem(made, key.get());
}

absl::StatusOr<std::string> MakeToken() {
  unsigned char bits[32];
  if (RAND_bytes(bits, sizeof(bits)) != 1) {
    return OpenSslFailure("no random numbers");
  }
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(bits), sizeof(bits)});
}

absl::Status WriteCertificates(const std::string& folder,
                               const std::vector<std::string>& workers,
                               const Validity& validity) {
  for (const std::string& worker : workers) {
    RETURN_IF_ERROR(rpc::CheckWorkerName(worker));
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::UnavailableError(absl::StrCat(
        "cannot make the folder ", folder, ": ", std::strerror(errno)));
  }
  ASSIGN_OR_RETURN(const CertificateAndKey authority,
                   AuthorityIn(folder, validity));
  if (const std::string token = folder + "/token"; !Exists(token)) {
    ASSIGN_OR_RETURN(const std::string made, MakeToken());
    RETURN_IF_ERROR(WriteFile(token, made + "\n", 0600));
  }
  std::vector<std::string> names = workers;
  names.insert(names.end(), {rpc::kRendezvousName, "batonctl"});
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const CertificateAndKey made,
                     MakeCertificate(authority, {name}, validity));
    const std::string base = absl::StrCat(folder, "/", name);
    RETURN_IF_ERROR(WriteFile(base + ".key", made.key, 0600));
    RETURN_IF_ERROR(WriteFile(base + ".pem", made.certificate, 0644));
  }
  return absl::OkStatus();
}

}  // namespace baton::tools
