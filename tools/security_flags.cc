// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/security_flags.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status.h"

ABSL_FLAG(std::string, tls_dir, "",
          "folder that baton-certs made, instead of the next four flags; "
          "default BATON_TLS_DIR");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file with this worker's certificate; {name} stands for its "
          "name; default BATON_TLS_CERT");
ABSL_FLAG(std::string, tls_key, "",
          "PEM file with the private key of --tls_cert; default BATON_TLS_KEY");
ABSL_FLAG(std::string, tls_ca, "",
          "PEM file with the authority that signs all workers' certificates; "
          "default BATON_TLS_CA");
ABSL_FLAG(std::string, cluster_token_file, "",
          "file with the token, 64 hexadecimal digits, that all workers of the "
          "cluster share; default BATON_CLUSTER_TOKEN_FILE");
ABSL_FLAG(bool, insecure, false,
          "talk in clear to other machines, to whoever comes; also "
          "BATON_INSECURE=1");
ABSL_FLAG(bool, trusted_fabric, false,
          "tensors travel in clear, which is faster, between two workers that "
          "both have this flag, whatever protects the rest; also "
          "BATON_TRUSTED_FABRIC=on");

namespace baton::tools {
namespace {

struct Setting {
  absl::Flag<std::string>* flag;
  const char* variable;
};

std::string ValueOf(const Setting& setting) {
  const std::string flag = absl::GetFlag(*setting.flag);
  const char* value = std::getenv(setting.variable);
  return flag.empty() && value != nullptr ? value : flag;
}

const Setting kDir{&FLAGS_tls_dir, "BATON_TLS_DIR"};
const Setting kCert{&FLAGS_tls_cert, "BATON_TLS_CERT"};
const Setting kKey{&FLAGS_tls_key, "BATON_TLS_KEY"};
const Setting kAuthority{&FLAGS_tls_ca, "BATON_TLS_CA"};
const Setting kToken{&FLAGS_cluster_token_file, "BATON_CLUSTER_TOKEN_FILE"};

bool Insecure() {
  const char* value = std::getenv("BATON_INSECURE");
  return absl::GetFlag(FLAGS_insecure) ||
         (value != nullptr && std::string(value) == "1");
}

rpc::SecurityFiles FilesOf(const std::string& name) {
  const std::string own = rpc::CertificateName(name);
  const std::string dir = ValueOf(kDir);
  const auto path = [&](const Setting& setting, const char* in_dir) {
    std::string value = ValueOf(setting);
    if (value.empty() && !dir.empty()) value = absl::StrCat(dir, "/", in_dir);
    return absl::StrReplaceAll(value, {{"{name}", own}});
  };
  return {.certificate = path(kCert, "{name}.pem"),
          .key = path(kKey, "{name}.key"),
          .authority = path(kAuthority, "ca.pem"),
          .token = path(kToken, "token")};
}

}  // namespace

absl::StatusOr<rpc::Security> SecurityFromFlags(const std::string& name) {
  ASSIGN_OR_RETURN(rpc::Security security,
                   rpc::LoadSecurity(FilesOf(name), name));
  security.insecure = Insecure();
  security.trusted_fabric = absl::GetFlag(FLAGS_trusted_fabric);
  if (security.insecure && security.tls()) {
    return absl::InvalidArgumentError(
        "--insecure and TLS (--tls_dir, --tls_cert) exclude each other");
  }
  return security;
}

std::map<std::string, std::string> SecurityEnvironment() {
  std::map<std::string, std::string> environment;
  for (const Setting* setting : {&kDir, &kCert, &kKey, &kAuthority, &kToken}) {
    const std::string value = ValueOf(*setting);
    if (!value.empty()) environment[setting->variable] = value;
  }
  if (Insecure()) environment.emplace("BATON_INSECURE", "1");
  if (absl::GetFlag(FLAGS_trusted_fabric))
    environment.emplace("BATON_TRUSTED_FABRIC", "on");
  return environment;
}

}  // namespace baton::tools
