// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "rpc/call_proof.h"

#include <google/protobuf/message_lite.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "rpc/rendezvous.pb.h"
#include "rpc/security.h"

namespace baton::rpc::internal {
namespace {

using Clock = CallGuard::Clock;

constexpr char kCaller[] = "a caller of a rendezvous";
constexpr char kCalled[] = "a rendezvous";
constexpr size_t kMarkBytes = 32;
// A challenge consists of random bytes, the time at which it expires, and an
// HMAC by its maker.
constexpr size_t kTimeBytes = sizeof(int64_t);
constexpr size_t kChallengeBytes = kKeyBytes + kTimeBytes + kMarkBytes;

std::string Prove(const std::string& token, const char* role,
                  const wire::CallProof& call, const std::string& asked) {
  return ProveToken(token, {role, call.challenge(), call.nonce(),
                            absl::StrCat(call.number()), asked});
}

std::string Mark(const std::string& key, std::string_view challenge) {
  return ProveToken(key, {"a challenge", challenge});
}

}  // namespace

std::string Asked(const google::protobuf::MessageLite& request) {
  std::string asked = request.GetTypeName();
  asked.push_back('\0');
  return asked + request.SerializeAsString();
}

absl::StatusOr<std::string> CallProver::Show(const std::string& asked) {
  wire::CallProof call;
  ASSIGN_OR_RETURN(*call.mutable_nonce(), NewKey());
  if (!challenge_.empty()) {
    call.set_challenge(challenge_);
    call.set_number(++number_);
    call.set_proof(Prove(token_, kCaller, call, asked));
    expected_ = Prove(token_, kCalled, call, asked);
  }
  return call.SerializeAsString();
}

bool CallProver::TakeChallenge(const std::string& shown) {
  wire::AnswerProof answer;
  if (!answer.ParseFromString(shown)) return false;
  challenge_ = answer.challenge();
  return !challenge_.empty();
}

absl::Status CallProver::CheckAnswer(const std::string& shown) const {
  wire::AnswerProof answer;
  if (answer.ParseFromString(shown) && !expected_.empty() &&
      SameToken(answer.proof(), expected_)) {
    return absl::OkStatus();
  }
  return TokensDiffer("it does not prove to know the cluster token");
}

CallGuard::CallGuard(std::string token)
    : token_(std::move(token)), key_(NewKey()) {}

absl::Status CallGuard::Challenge(Clock::time_point now, const char* why,
                                  std::string* answer) const {
  RETURN_IF_ERROR(key_.status());
  ASSIGN_OR_RETURN(std::string challenge, NewKey());
  const int64_t end = (now + kChallengeLife).time_since_epoch().count();
  challenge.append(reinterpret_cast<const char*>(&end), kTimeBytes);
  challenge += Mark(*key_, challenge);
  wire::AnswerProof out;
  out.set_challenge(std::move(challenge));
  *answer = out.SerializeAsString();
  return TokensDiffer(why);
}

Clock::time_point CallGuard::EndOf(const std::string& challenge) const {
  if (challenge.size() != kChallengeBytes || !key_.ok()) return {};
  const std::string marked = challenge.substr(0, kKeyBytes + kTimeBytes);
  if (!SameToken(Mark(*key_, marked), challenge.substr(marked.size())))
    return {};
  int64_t end;
  std::memcpy(&end, challenge.data() + kKeyBytes, kTimeBytes);
  return Clock::time_point(Clock::duration(end));
}

bool CallGuard::IsNew(const std::string& challenge, uint64_t number,
                      Clock::time_point now, Clock::time_point until) {
  MutexLock lock(mutex_);
  auto found = heard_.find(challenge);
  if (found == heard_.end()) {
    std::erase_if(heard_,
                  [now](const auto& each) { return each.second.until < now; });
    found = heard_.emplace(challenge, Heard{.until = until}).first;
  }
  if (number <= found->second.number) return false;
  found->second.number = number;
  return true;
}

absl::Status CallGuard::Check(const std::string& shown,
                              const std::string& asked, Clock::time_point now,
                              std::string* answer) {
  answer->clear();
  if (token_.empty()) {
    return shown.empty() ? absl::OkStatus()
                         : TokensDiffer(
                               "the caller has a cluster token, and the called "
                               "has none");
  }
  wire::CallProof call;
  if (shown.empty() || !call.ParseFromString(shown)) {
    return TokensDiffer("the caller has no cluster token, and one is needed");
  }
  const Clock::time_point until = EndOf(call.challenge());
  if (until < now) {
    return Challenge(now, "the caller has not proved yet to know the token",
                     answer);
  }
  if (call.nonce().size() != kKeyBytes ||
      !SameToken(call.proof(), Prove(token_, kCaller, call, asked))) {
    return TokensDiffer("the caller has another cluster token");
  }
  if (!IsNew(call.challenge(), call.number(), now, until)) {
    return Challenge(now, "the call was made before", answer);
  }
  wire::AnswerProof out;
  out.set_proof(Prove(token_, kCalled, call, asked));
  *answer = out.SerializeAsString();
  return absl::OkStatus();
}

}  // namespace baton::rpc::internal
