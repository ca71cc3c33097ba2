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

constexpr uint32_t kVersion = 9;
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

// Limits the lease to a range in which sums cannot overflow.
std::chrono::milliseconds Lease(int64_t ms) {
  return std::chrono::milliseconds(
      std::clamp<int64_t>(ms, 0, kMostLease.count()));
}

template <typename Message>
void ToWire(const std::vector<ChannelOffer>& offers, Message& out) {
  for (const ChannelOffer& offer : offers) {
    wire::ChannelOffer& entry = *out.add_channels();
    entry.set_channel(offer.channel);
    entry.set_offer(offer.offer);
    entry.set_missing(offer.missing);
  }
}

template <typename Message>
std::vector<ChannelOffer> OffersIn(const Message& in) {
  std::vector<ChannelOffer> offers;
  for (const wire::ChannelOffer& entry : in.channels()) {
    offers.push_back(
        {entry.channel(), entry.offer(), Printable(entry.missing())});
  }
  return offers;
}

// Whether one of the two is an observer.
bool Observes(const GrpcOptions& options, const Hello& hello) {
  return !options.observer_digest.empty() &&
         (options.registry_digest == options.observer_digest ||
          hello.registry_digest == options.observer_digest);
}

// For example "worker bob exports Scale and Shift, which worker alice does not;
// worker alice 1 that worker bob does not". Empty if the exports are unknown.
std::string Difference(const GrpcOptions& options, const WorkerInfo& self,
                       const Hello& hello) {
  constexpr size_t kNamed = 5;
  if (options.exports.empty() || hello.exports.empty()) return "";
  const std::set<uint64_t> theirs(hello.exports.begin(), hello.exports.end());
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
        ", which worker ", hello.self.name, " does not"));
  }
  if (more > 0) {
    parts.push_back(
        absl::StrCat("worker ", hello.self.name, " exports ", more,
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

Hello MakeHello(const GrpcOptions& options, const WorkerInfo& self,
                const WorkerInfo& to) {
  std::vector<uint64_t> exports;
  for (const auto& [digest, name] : options.exports) exports.push_back(digest);
  return {.version = kVersion,
          .cluster = options.cluster,
          .registry_digest = options.registry_digest,
          .self = self,
          .to_name = to.name,
          .to_incarnation = to.incarnation,
          .lease = options.lease,
          .exports = std::move(exports),
          .max_message_bytes = options.max_message_bytes};
}

std::string Serialize(const Hello& hello) {
  wire::Hello out;
  out.set_version(hello.version);
  out.set_cluster(hello.cluster);
  out.set_registry_digest(hello.registry_digest);
  ToWire(hello.self, *out.mutable_self());
  out.set_to_name(hello.to_name);
  out.set_to_incarnation(hello.to_incarnation);
  out.set_stream(hello.bulk ? wire::STREAM_BULK : wire::STREAM_CONTROL);
  out.set_attempt(hello.attempt);
  out.set_lease_ms(hello.lease.count());
  ToWire(hello.channels, out);
  for (const uint64_t digest : hello.exports) out.add_exports(digest);
  out.set_max_message_bytes(hello.max_message_bytes);
  out.set_nonce(hello.nonce);
  return out.SerializeAsString();
}

grpc::ByteBuffer Encode(const Hello& hello) {
  return MetaFrame(FrameKind::kHello, Serialize(hello));
}

grpc::ByteBuffer Encode(const Challenge& challenge) {
  wire::Challenge out;
  ToWire(challenge.self, *out.mutable_self());
  out.set_nonce(challenge.nonce);
  out.set_proof(challenge.proof);
  return MetaFrame(FrameKind::kChallenge, out.SerializeAsString());
}

grpc::ByteBuffer EncodeProof(const std::string& proof) {
  wire::Proof out;
  out.set_proof(proof);
  return MetaFrame(FrameKind::kProof, out.SerializeAsString());
}

grpc::ByteBuffer Encode(const HelloAnswer& answer) {
  wire::HelloAnswer out;
  out.set_verdict(static_cast<wire::Verdict>(answer.verdict));
  out.set_text(answer.text);
  ToWire(answer.self, *out.mutable_self());
  out.set_abandoned_attempt(answer.abandoned_attempt);
  out.set_lease_ms(answer.lease.count());
  ToWire(answer.channels, out);
  out.set_max_message_bytes(answer.max_message_bytes);
  return MetaFrame(FrameKind::kHelloAnswer, out.SerializeAsString());
}

absl::StatusOr<Hello> ParseHello(const std::string& meta) {
  wire::Hello in;
  if (!in.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a hello that does not parse");
  }
  ASSIGN_OR_RETURN(WorkerInfo self, FromWire(in.self()));
  if (in.stream() != wire::STREAM_CONTROL && in.stream() != wire::STREAM_BULK) {
    return absl::InvalidArgumentError("a hello for an unknown kind of stream");
  }
  return Hello{.version = in.version(),
               .cluster = Printable(in.cluster()),
               .registry_digest = in.registry_digest(),
               .self = std::move(self),
               .to_name = Printable(in.to_name()),
               .to_incarnation = in.to_incarnation(),
               .bulk = in.stream() == wire::STREAM_BULK,
               .attempt = in.attempt(),
               .lease = Lease(in.lease_ms()),
               .channels = OffersIn(in),
               .exports = {in.exports().begin(), in.exports().end()},
               .max_message_bytes = in.max_message_bytes(),
               .nonce = in.nonce()};
}

absl::StatusOr<Challenge> ParseChallenge(const std::string& meta) {
  wire::Challenge in;
  if (!in.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a challenge that does not parse");
  }
  ASSIGN_OR_RETURN(WorkerInfo self, FromWire(in.self()));
  return Challenge{
      .self = std::move(self), .nonce = in.nonce(), .proof = in.proof()};
}

absl::StatusOr<std::string> ParseProof(const std::string& meta) {
  wire::Proof in;
  if (!in.ParseFromString(meta)) {
    return absl::InvalidArgumentError("a proof that does not parse");
  }
  return in.proof();
}

std::string ProofOf(HelloRole role, const std::string& token,
                    const std::string& hello, const Challenge& challenge) {
  return ProveToken(token,
                    {role == HelloRole::kDialer ? "a worker that dialed"
                                                : "a worker that was dialed",
                     hello, challenge.nonce, challenge.self.name,
                     absl::StrCat(challenge.self.incarnation)});
}

absl::StatusOr<HelloAnswer> ParseHelloAnswer(const std::string& meta) {
  wire::HelloAnswer in;
  if (!in.ParseFromString(meta) || !wire::Verdict_IsValid(in.verdict())) {
    return absl::InvalidArgumentError("a hello answer that does not parse");
  }
  HelloAnswer answer{.verdict = static_cast<Verdict>(in.verdict()),
                     .text = Printable(in.text()),
                     .abandoned_attempt = in.abandoned_attempt(),
                     .lease = Lease(in.lease_ms()),
                     .channels = OffersIn(in),
                     .max_message_bytes = in.max_message_bytes()};
  if (answer.verdict == Verdict::kOk) {
    ASSIGN_OR_RETURN(answer.self, FromWire(in.self()));
  }
  return answer;
}

HelloAnswer Judge(const GrpcOptions& options, const WorkerInfo& self,
                  const Hello& hello) {
  const auto refuse = [&](Verdict verdict, std::string text) {
    return HelloAnswer{
        .verdict = verdict, .text = std::move(text), .self = self};
  };
  const std::string& caller = hello.self.name;
  if (hello.version != kVersion) {
    return refuse(Verdict::kRefused,
                  absl::StrCat("worker ", caller, " speaks version ",
                               hello.version, " of the protocol, worker ",
                               self.name, " version ", kVersion));
  }
  if (hello.cluster != options.cluster) {
    return refuse(Verdict::kRefused,
                  absl::StrCat("worker ", caller, " belongs to cluster \"",
                               hello.cluster, "\", worker ", self.name,
                               " to cluster \"", options.cluster, "\""));
  }
  if (hello.to_name != self.name) {
    return refuse(Verdict::kNotMe,
                  absl::StrCat("worker ", self.name, " lives where worker ",
                               hello.to_name, " was expected"));
  }
  if (hello.to_incarnation != 0 && hello.to_incarnation != self.incarnation) {
    return refuse(Verdict::kNotMe,
                  absl::StrCat("worker ", self.name,
                               " has started again since it was known to ",
                               "worker ", caller));
  }
  if (hello.registry_digest != options.registry_digest &&
      !Observes(options, hello)) {
    const std::string difference = Difference(options, self, hello);
    return refuse(
        Verdict::kRefused,
        absl::StrCat("worker ", caller, " runs a different binary than worker ",
                     self.name, ": what they export to each other differs",
                     difference.empty() ? "" : " (", difference,
                     difference.empty() ? "; " : "); ",
                     "all workers must run the same program (baton-run "
                     "--worker_program=PROGRAM), or programs of one build "
                     "with the same plug-ins"));
  }
  if (caller == self.name) {
    return refuse(Verdict::kRefused,
                  absl::StrCat("two workers are named ", caller));
  }
  return {.verdict = Verdict::kOk, .self = self};
}

}  // namespace baton::rpc
