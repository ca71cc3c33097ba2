// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Who is let in, and what those hear who are not.

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/grpc_worker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_files.h"

namespace baton::rpc {
namespace {

using absl::StatusCode;
using baton::testing::Fails;
using baton::testing::IsOk;
using std::chrono::milliseconds;
using Workers =
    std::pair<std::unique_ptr<TestWorker>, std::unique_ptr<TestWorker>>;

constexpr milliseconds kLong{30'000};

GrpcOptions Over(const Security& security, bool unix_socket = false,
                 milliseconds patience = kLong) {
  return {.unix_socket = unix_socket,
          .connect_timeout = patience,
          .reconnect_timeout = patience,
          .security = security};
}

// alice and bob, started; alice knows where bob is.
Workers SecurePair(const Security& alices, const Security& bobs,
                   bool unix_socket = false, milliseconds patience = kLong) {
  Workers workers{NewWorker("alice", 0, Over(alices, unix_socket, patience)),
                  NewWorker("bob", 1, Over(bobs, unix_socket))};
  workers.first->Start();
  workers.second->Start();
  workers.first->transport->AddPeer(workers.second->info);
  return workers;
}

absl::Status Dial(const Security& alices, const Security& bobs,
                  milliseconds patience = kLong) {
  const Workers workers = SecurePair(alices, bobs, false, patience);
  const absl::Status status = workers.first->SendTo("bob", {"hello", {}});
  if (!status.ok()) {
    EXPECT_EQ(workers.second->mailbox.count(), 0u);
  }
  return status;
}

// Who cannot know that nobody will answer tries for as long as it may, and says
// then what it saw of it; a busy machine may need longer to see anything.
absl::Status DialInVain(const Security& alices, const Security& bobs) {
  for (milliseconds patience{1000};; patience *= 4) {
    absl::Status status = Dial(alices, bobs, patience);
    if (!absl::StrContains(status.message(), "it does not answer") ||
        patience > kLong / 4) {
      return status;
    }
  }
}

Security WithToken(Security security, char digit) {
  security.token = std::string(64, digit);
  return security;
}

// Asks bob's server as any gRPC client could, without Baton's transport.
grpc::Status AskForHealth(const TestWorker& bob,
                          const grpc::SslCredentialsOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride("bob");
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      TcpOf(bob.info.address), grpc::SslCredentials(options), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  grpc::Slice slice("");
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

class GrpcTls : public ::testing::Test {
 protected:
  TestAuthority authority_;
};

TEST_F(GrpcTls, WorkersOfOneAuthorityTalkBothWays) {
  const Workers workers =
      SecurePair(authority_.For("alice"), authority_.For("bob"));
  auto& [alice, bob] = workers;
  ASSERT_THAT(alice->SendTo("bob", {"to bob", {}}), IsOk());
  EXPECT_EQ(bob->mailbox.Await(1).at(0).from.name, "alice");
  const Tensor large = Tensor::Full({300'000}, 2.5);
  ASSERT_THAT(bob->SendTo("alice", {"to alice", {large}}), IsOk());
  const Message got = alice->mailbox.Await(1).at(0).message;
  EXPECT_EQ(got.tensors.at(0).data<float>()[299'999], 2.5f);
}

TEST_F(GrpcTls, ACertificateOfAnotherAuthorityIsRefusedByEither) {
  const TestAuthority other;
  EXPECT_THAT(Dial(authority_.For("alice"), other.For("bob")),
              Fails(StatusCode::kUnauthenticated,
                    "its certificate has expired or is not of the authority "
                    "in --tls_ca"));
  // alice trusts bob, and bob does not trust alice.
  Security alices = other.For("alice");
  alices.authority = authority_.own().certificate;
  EXPECT_THAT(DialInVain(alices, authority_.For("bob")),
              Fails(StatusCode::kUnavailable,
                    "maybe it does not trust this side's certificate"));
}

TEST_F(GrpcTls, AnExpiredCertificateIsRefusedByEither) {
  EXPECT_THAT(Dial(authority_.For("alice"), authority_.For("bob", Expired())),
              Fails(StatusCode::kUnauthenticated, "has expired or"));
  EXPECT_THAT(
      DialInVain(authority_.For("alice", Expired()), authority_.For("bob")),
      Fails(StatusCode::kUnavailable, "have expired"));
}

TEST_F(GrpcTls, AWorkerMustHaveTheNameOfItsCertificate) {
  EXPECT_THAT(Dial(authority_.For("alice"), authority_.For("carol")),
              Fails(StatusCode::kUnauthenticated,
                    "its certificate is not for bob; its --tls_cert"));
  EXPECT_THAT(Dial(authority_.For("mallory"), authority_.For("bob")),
              Fails(StatusCode::kFailedPrecondition,
                    "worker alice came with a certificate for mallory, not "
                    "for alice; its --tls_cert"));
}

TEST_F(GrpcTls, WithoutACertificateNobodyIsLetIn) {
  const auto bob = NewWorker("bob", 1, Over(authority_.For("bob")));
  const Security known = authority_.For("alice");
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = known.authority;
  EXPECT_EQ(AskForHealth(*bob, options).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  options.pem_cert_chain = known.certificate;
  options.pem_private_key = known.key;
  EXPECT_TRUE(AskForHealth(*bob, options).ok());
}

TEST_F(GrpcTls, ClearTextAndTlsSayThatTheyDoNotFit) {
  EXPECT_THAT(DialInVain({}, authority_.For("bob")),
              Fails(StatusCode::kUnavailable, "maybe it wants TLS"));
  EXPECT_THAT(Dial(authority_.For("alice"), {}),
              Fails(StatusCode::kUnauthenticated,
                    "it talks in clear and this side with TLS; give it"));
}

TEST_F(GrpcTls, TheSocketOfOneUserNeedsNoTlsButTheToken) {
  const Security alices = WithToken(authority_.For("alice"), 'a');
  const Security bobs = WithToken(authority_.For("bob"), 'b');
  EXPECT_THAT(SecurePair(alices, alices, true).first->SendTo("bob", {}),
              IsOk());
  EXPECT_THAT(SecurePair(alices, bobs, true).first->SendTo("bob", {}),
              Fails(StatusCode::kUnauthenticated,
                    "it does not prove to know the cluster token"));
}

TEST_F(GrpcTls, NamesOfAllAllowedCharactersFitIntoACertificate) {
  for (const std::string& name :
       {std::string("a-b_c.d"), std::string("stage:0"), std::string("10.0.0.1"),
        std::string(127, 'n')}) {
    auto odd = NewWorker(name, 1, Over(authority_.For(name)));
    auto alice = NewWorker("alice", 0, Over(authority_.For("alice")));
    odd->Start();
    alice->Start();
    alice->transport->AddPeer(odd->info);
    EXPECT_THAT(alice->SendTo(name, {}), IsOk());
    auto bob = NewWorker("bob", 2, Over(authority_.For("bob")));
    bob->Start();
    odd->transport->AddPeer(bob->info);
    EXPECT_THAT(odd->SendTo("bob", {}), IsOk());
  }
}

TEST(GrpcToken, IsAskedForAndNamedInTheRefusal) {
  const Security with = WithToken({}, '7');
  EXPECT_THAT(Dial(with, with), IsOk());
  EXPECT_THAT(Dial(WithToken({}, '8'), with),
              Fails(StatusCode::kUnauthenticated,
                    "it does not prove to know the cluster token; give all "
                    "workers of the cluster the same --cluster_token_file"));
  EXPECT_THAT(Dial({}, with),
              Fails(StatusCode::kUnauthenticated,
                    "the caller has no cluster token, and one is needed"));
  EXPECT_THAT(Dial(with, {}),
              Fails(StatusCode::kUnauthenticated,
                    "the caller has a cluster token, and the called has none"));
}

TEST(GrpcToken, GoesWithTlsToo) {
  const TestAuthority authority;
  const Security bobs = WithToken(authority.For("bob"), '1');
  EXPECT_THAT(Dial(WithToken(authority.For("alice"), '1'), bobs), IsOk());
  EXPECT_THAT(Dial(authority.For("alice"), bobs),
              Fails(StatusCode::kUnauthenticated,
                    "the caller has no cluster token, and one is needed"));
}

TEST(GrpcExposure, BeyondThisMachineItTakesTlsOrAWord) {
  const GrpcOptions open{.listen = "0.0.0.0:0", .unix_socket = false};
  EXPECT_THAT(MakeGrpcTransport(open),
              Fails(StatusCode::kInvalidArgument, "--insecure"));
  const GrpcOptions told{.advertise_host = "10.1.2.3", .unix_socket = false};
  EXPECT_THAT(MakeGrpcTransport(told),
              Fails(StatusCode::kInvalidArgument, "10.1.2.3"));
  GrpcOptions meant = open;
  meant.security.insecure = true;
  EXPECT_THAT(MakeGrpcTransport(meant), IsOk());
  GrpcOptions safe = open;
  safe.security = TestAuthority().For("alice");
  EXPECT_THAT(MakeGrpcTransport(safe), IsOk());
}

TEST(GrpcSocket, OneThatIsAskedForIsPrivateToo) {
  baton::testing::TempFolder folder;
  const std::string path = folder / "s";
  const mode_t mask = umask(0);
  const auto alice = NewWorker("alice", 0, {.listen = "unix:" + path});
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace baton::rpc
