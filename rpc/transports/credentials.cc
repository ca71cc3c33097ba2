// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"

namespace baton::rpc {
namespace {

bool OverTls(const Security& security, const std::string& address) {
  return security.tls() && !absl::StartsWith(address, "unix:");
}

std::shared_ptr<grpc::ChannelCredentials> DialCredentials(
    const Security& security) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = security.authority;
  options.pem_private_key = security.key;
  options.pem_cert_chain = security.certificate;
  return grpc::SslCredentials(options);
}

std::vector<std::string> Property(const grpc::AuthContext& context,
                                  const char* name) {
  std::vector<std::string> values;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    values.emplace_back(value.data(), value.size());
  }
  return values;
}

// Ignores the case of `text`, whose wording depends on the TLS library.
bool ContainsAny(const std::string& text,
                 std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) {
    return absl::StrContains(text, part);
  });
}

}  // namespace

absl::Status CheckWorkerExposure(const Security& security,
                                 const std::string& listen,
                                 const std::string& advertise_host) {
  RETURN_IF_ERROR(CheckExposure(security, "a worker would listen on", listen));
  if (advertise_host.empty()) return absl::OkStatus();
  return CheckExposure(security, "a worker would be reached at",
                       ToString({advertise_host, 0}));
}

absl::Status CheckPeerExposure(const Security& security, const WorkerInfo& peer,
                               Names names) {
  RETURN_IF_ERROR(Annotate(CheckDialable(peer.address),
                           absl::StrCat("worker ", peer.name)));
  return CheckExposure(
      security, absl::StrCat("worker ", peer.name, " would be dialed at"),
      peer.address, names);
}

std::shared_ptr<grpc::ServerCredentials> PortCredentials(
    const Security& security, const std::string& address) {
  if (!OverTls(security, address)) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = security.authority;
  options.pem_key_cert_pairs.push_back({security.key, security.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::Channel> SecureChannel(const Security& security,
                                             const std::string& target,
                                             const std::string& worker,
                                             grpc::ChannelArguments arguments) {
  if (!OverTls(security, target)) {
    return grpc::CreateCustomChannel(
        GrpcTarget(target), grpc::InsecureChannelCredentials(), arguments);
  }
  const std::string name = CertificateName(worker);
  // gRPC would take what follows a colon for a port.
  arguments.SetSslTargetNameOverride(
      absl::StrContains(name, ':') ? absl::StrCat("[", name, "]") : name);
  return grpc::CreateCustomChannel(GrpcTarget(target),
                                   DialCredentials(security), arguments);
}

absl::Status CheckCaller(const grpc::CallbackServerContext& context,
                         const std::string& worker) {
  const auto identity = context.auth_context();
  if (identity == nullptr) return absl::OkStatus();
  const std::vector<std::string> transport =
      Property(*identity, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (transport != std::vector<std::string>{GRPC_SSL_TRANSPORT_SECURITY_TYPE}) {
    return absl::OkStatus();
  }
  const std::vector<std::string> names =
      Property(*identity, GRPC_PEER_DNS_PROPERTY_NAME);
  if (std::find(names.begin(), names.end(), CertificateName(worker)) !=
      names.end()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", worker, " came with a certificate for ",
      names.empty() ? "nobody" : absl::StrJoin(names, ", "), ", not for ",
      CertificateName(worker), "; its --tls_cert must be one for that name"));
}

// For example "failed to connect to all addresses; last error: UNKNOWN:
// ipv4:1.2.3.4:5: Failed to connect to remote host: Connection refused".
std::string PlainReason(const std::string& text) {
  const auto after = [](const std::string& whole, const std::string& before) {
    const size_t at = whole.find(before);
    return at == std::string::npos ? whole : whole.substr(at + before.size());
  };
  const std::string last = after(text, "last error: ");
  if (last.size() == text.size()) return text;
  const std::string without_code = after(last, ": ");
  const std::string without_target = after(without_code, ": ");
  return after(without_target, "Failed to connect to remote host: ");
}

absl::Status ExplainFailure(const Security& security, const std::string& worker,
                            const absl::Status& why) {
  if (absl::IsUnauthenticated(why)) return why;
  const std::string text = absl::AsciiStrToLower(why.message());
  if (ContainsAny(text, {"certificate verify failed"})) {
    return absl::UnauthenticatedError(
        "its certificate has expired or is not of the authority in --tls_ca");
  }
  if (ContainsAny(text, {"is not in peer certificate"})) {
    return absl::UnauthenticatedError(
        absl::StrCat("its certificate is not for ", CertificateName(worker),
                     "; its --tls_cert must be one for that name"));
  }
  if (ContainsAny(text, {"wrong version number"})) {
    return absl::UnauthenticatedError(
        "it talks in clear and this side with TLS; give it --tls_cert, "
        "--tls_key and --tls_ca too");
  }
  // An end that refuses a handshake closes the connection without a reason.
  if (!ContainsAny(text, {"socket closed", "connection reset",
                          "endpoint closed", "broken pipe"})) {
    return absl::UnavailableError(PlainReason(std::string(why.message())));
  }
  return absl::UnavailableError(absl::StrCat(
      PlainReason(std::string(why.message())),
      security.tls()
          ? "; maybe it does not trust this side's certificate: both must be "
            "of the authority in --tls_ca and not have expired"
          : "; maybe it wants TLS: give this side --tls_dir, too, or "
            "--tls_cert, --tls_key and --tls_ca"));
}

}  // namespace baton::rpc
