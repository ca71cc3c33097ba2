// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/transports/hello.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "rpc/security.h"
#include "rpc/transports/framing.h"
#include "rpc/wire.pb.h"
#include "rpc/worker.h"

namespace baton::rpc {
namespace {

constexpr uint32_t kVersion = 10;
constexpr size_t kMaxText = 1000;
constexpr size_t kMaxAddress = 4096;

// Makes text of an unauthenticated peer safe for logs and error messages.
std::string Printable(const std::string& text) {
  std::string line = text.substr(0, kMaxText);
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return !absl::ascii_isprint(static_cast<uint8_t>(c)); },
      '?');
  return line;
}

// Makes the parts that a hello and its answer share safe to use.
template <typename Message>
void MakeUsable(Message& message) {
  // Sums with leases cannot overflow within this range.
  message.set_lease_ms(
      std::clamp<int64_t>(message.lease_ms(), 0, kMostLease.count()));
  for (wire::ChannelOffer& offer : *message.mutable_channels())
    offer.set_missing(Printable(offer.missing()));
}

// Whether one of the two is an observer.
bool Observes(const GrpcOptions& options, const wire::Hello& hello) {
  return !options.observer_digest.empty() &&
         (options.registry_digest == options.observer_digest ||
          hello.registry_digest() == options.observer_digest);
}

// For example "worker bob exports Scale and Shift, which worker alice does not;
// worker alice 1 that worker bob does not". Empty if the exports are unknown.
std::string Difference(const GrpcOptions& options, const WorkerInfo& self,
                       const wire::Hello& hello) {
  constexpr size_t kNamed = 5;
  if (options.exports.empty() || hello.exports().empty()) return "";
  const std::set<uint64_t> theirs(hello.exports().begin(),
                                  hello.exports().end());
  std::vector<std::string> missing;
  size_t known = 0;
  for (const auto& [digest, name] : options.exports) {
    if (theirs.contains(digest)) {
      ++known;
    } else {
      missing.push_back(name);
    }
  }
  const size_t more = theirs.size() - known;
  std::sort(missing.begin(), missing.end());
  if (missing.size() > kNamed) {
    const size_t left = missing.size() - kNamed;
    missing.resize(kNamed);
    missing.push_back(absl::StrCat(left, " more"));
  }
  std::vector<std::string> parts;
  if (!missing.empty()) {
    parts.push_back(absl::StrCat(
        "worker ", self.name, " exports ", absl::StrJoin(missing, ", "),
        ", which worker ", hello.self().name(), " does not"));
  }
  if (more > 0) {
    parts.push_back(
        absl::StrCat("worker ", hello.self().name(), " exports ", more,
                     more == 1 ? " type or function" : " types or functions",
                     " that worker ", self.name, " does not"));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

void ToWire(const WorkerInfo& info, wire::Worker& out) {
  out.set_name(info.name);
  out.set_rank(static_cast<int32_t>(info.rank));
  out.set_incarnation(info.incarnation);
  out.set_address(info.address);
  out.set_compute(info.compute.ToString());
}

absl::StatusOr<WorkerInfo> FromWire(const wire::Worker& in) {
  RETURN_IF_ERROR(CheckWorkerName(in.name()));
  if (in.rank() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", in.name(), " has rank ", in.rank()));
  }
  if (in.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", in.name(), " has no incarnation"));
  }
  if (in.address().size() > kMaxAddress) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", in.name(), " has an address of ",
                     in.address().size(), " characters"));
  }
  ASSIGN_OR_RETURN(const Compute compute, Compute::Parse(in.compute()));
  return WorkerInfo{in.name(), Rank{in.rank()}, in.incarnation(), in.address(),
                    compute};
}

wire::Hello MakeHello(const GrpcOptions& options, const WorkerInfo& self,
                      const WorkerInfo& to) {
  wire::Hello hello;
  hello.set_version(kVersion);
  hello.set_cluster(options.cluster);
  hello.set_registry_digest(options.registry_digest);
  ToWire(self, *hello.mutable_self());
  hello.set_to_name(to.name);
  hello.set_to_incarnation(to.incarnation);
  hello.set_lease_ms(options.lease.count());
  for (const auto& [digest, name] : options.exports) hello.add_exports(digest);
  hello.set_max_message_bytes(options.max_message_bytes);
  return hello;
}

wire::HelloAnswer Refusal(wire::Verdict verdict, std::string text) {
  wire::HelloAnswer answer;
  answer.set_verdict(verdict);
  answer.set_text(std::move(text));
  return answer;
}

grpc::ByteBuffer Encode(const wire::Hello& hello) {
  return MetaFrame(FrameKind::kHello, hello.SerializeAsString());
}

grpc::ByteBuffer Encode(const wire::Challenge& challenge) {
  return MetaFrame(FrameKind::kChallenge, challenge.SerializeAsString());
}

grpc::ByteBuffer EncodeProof(const std::string& proof) {
  wire::Proof out;
  out.set_proof(proof);
  return MetaFrame(FrameKind::kProof, out.SerializeAsString());
}

grpc::ByteBuffer Encode(const wire::HelloAnswer& answer) {
  return MetaFrame(FrameKind::kHelloAnswer, answer.SerializeAsString());
}

absl::StatusOr<wire::Hello> ParseHello(const std::string& meta) {
  wire::Hello hello;
  if (!hello.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a hello that does not parse");
  }
  RETURN_IF_ERROR(FromWire(hello.self()).status());
  hello.set_cluster(Printable(hello.cluster()));
  hello.set_to_name(Printable(hello.to_name()));
  MakeUsable(hello);
  return hello;
}

absl::StatusOr<wire::Challenge> ParseChallenge(const std::string& meta) {
  wire::Challenge challenge;
  if (!challenge.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a challenge that does not parse");
  }
  RETURN_IF_ERROR(FromWire(challenge.self()).status());
  return challenge;
}

absl::StatusOr<std::string> ParseProof(const std::string& meta) {
  wire::Proof in;
  if (!in.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a proof that does not parse");
  }
  return in.proof();
}

absl::StatusOr<wire::HelloAnswer> ParseHelloAnswer(const std::string& meta) {
  wire::HelloAnswer answer;
  if (!answer.ParseFromString(meta) ||
      !wire::Verdict_IsValid(answer.verdict())) {
    return absl::InvalidArgumentError("a hello answer that does not parse");
  }
  if (answer.verdict() == wire::VERDICT_OK) {
    RETURN_IF_ERROR(FromWire(answer.self()).status());
  }
  answer.set_text(Printable(answer.text()));
  MakeUsable(answer);
  return answer;
}

std::string ProofOf(HelloRole role, const std::string& token,
                    const std::string& hello,
                    const wire::Challenge& challenge) {
  return ProveToken(token,
                    {role == HelloRole::kDialer ? "a worker that dialed"
                                                : "a worker that was dialed",
                     hello, challenge.nonce(), challenge.self().name(),
                     absl::StrCat(challenge.self().incarnation())});
}

wire::HelloAnswer Judge(const GrpcOptions& options, const WorkerInfo& self,
                        const wire::Hello& hello) {
  const std::string& caller = hello.self().name();
  if (hello.version() != kVersion) {
    return Refusal(wire::VERDICT_REFUSED,
                   absl::StrCat("worker ", caller, " speaks version ",
                                hello.version(), " of the protocol, worker ",
                                self.name, " version ", kVersion));
  }
  if (hello.cluster() != options.cluster) {
    return Refusal(wire::VERDICT_REFUSED,
                   absl::StrCat("worker ", caller, " belongs to cluster \"",
                                hello.cluster(), "\", worker ", self.name,
                                " to cluster \"", options.cluster, "\""));
  }
  if (hello.to_name() != self.name) {
    return Refusal(wire::VERDICT_NOT_ME,
                   absl::StrCat("worker ", self.name, " lives where worker ",
                                hello.to_name(), " was expected"));
  }
  if (hello.to_incarnation() != 0 &&
      hello.to_incarnation() != self.incarnation) {
    return Refusal(wire::VERDICT_NOT_ME,
                   absl::StrCat("worker ", self.name,
                                " has started again since it was known to ",
                                "worker ", caller));
  }
  if (hello.registry_digest() != options.registry_digest &&
      !Observes(options, hello)) {
    const std::string difference = Difference(options, self, hello);
    return Refusal(
        wire::VERDICT_REFUSED,
        absl::StrCat("worker ", caller, " runs a different binary than worker ",
                     self.name, ": what they export to each other differs",
                     difference.empty() ? "" : " (", difference,
                     difference.empty() ? "; " : "); ",
                     "all workers must run the same program (baton-run "
                     "--worker_program=PROGRAM), or programs of one build "
                     "with the same plug-ins"));
  }
  if (caller == self.name) {
    return Refusal(wire::VERDICT_REFUSED,
                   absl::StrCat("two workers are named ", caller));
  }
  return {};
}

}  // namespace baton::rpc
