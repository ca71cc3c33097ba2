// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/free_with.h"
#include "core/status.h"

namespace baton::rpc {
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

absl::Status Wrong(const char* what, const std::string& path,
                   const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", path, ": ", why));
}

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
