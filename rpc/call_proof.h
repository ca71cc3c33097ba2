// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

// How a rendezvous and its callers prove to each other that they know the
// cluster's token, by what goes along with each call and its answer
// (rpc/rendezvous.proto). Without a token nothing does.
namespace baton::rpc::internal {

inline constexpr char kProofKey[] = "baton-proof-bin";  // of metadata

// What a call asks, as both ends see it.
std::string Asked(const google::protobuf::MessageLite& request);

// The caller's side, of one call after the other. Thread-compatible.
class CallProver {
 public:
  explicit CallProver(std::string token) : token_(std::move(token)) {}

  bool has_token() const { return !token_.empty(); }
  // What goes along with the next call.
  absl::StatusOr<std::string> Show(const std::string& asked);
  // What came with a refusal. True when it holds a challenge, with which the
  // call is worth another try.
  bool TakeChallenge(const std::string& shown);
  // What came with the answer to the last Show. Unauthenticated unless it
  // proves that who answers knows the token.
  absl::Status CheckAnswer(const std::string& shown) const;

 private:
  const std::string token_;
  std::string challenge_;
  uint64_t number_ = 0;
  std::string expected_;  // proof of the answer
};

// The rendezvous' side. Thread-safe.
class CallGuard {
 public:
  using Clock = std::chrono::steady_clock;
  // How long a challenge holds.
  static constexpr std::chrono::seconds kChallengeLife{60};

  explicit CallGuard(std::string token);

  // `shown` came along with a call that asks `asked`. Unauthenticated unless it
  // proves that the caller knows the token, and was not shown before. `answer`
  // goes along with the answer, whatever else becomes of the call.
  absl::Status Check(const std::string& shown, const std::string& asked,
                     Clock::time_point now, std::string* answer);

 private:
  struct Heard {
    uint64_t number = 0;  // the last one
    Clock::time_point until;
  };

  absl::Status Challenge(Clock::time_point now, const char* why,
                         std::string* answer) const;
  // Until when it holds; the distant past for what is no challenge of this one.
  Clock::time_point EndOf(const std::string& challenge) const;
  bool IsNew(const std::string& challenge, uint64_t number,
             Clock::time_point now, Clock::time_point until);

  const std::string token_;
  const absl::StatusOr<std::string> key_;  // that marks its challenges

  Mutex mutex_;
  // By challenge. Only who knows the token has an entry here.
  std::map<std::string, Heard> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
