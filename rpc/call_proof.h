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
// cluster's token, by metadata of each call and its answer
// (rpc/rendezvous.proto). Without a token there is no such metadata.
namespace baton::rpc::internal {

inline constexpr char kProofKey[] = "baton-proof-bin";  // key of the metadata

// The bytes of a request that the proofs cover.
std::string Asked(const google::protobuf::MessageLite& request);

// The caller's side, for one call at a time. Thread-compatible.
class CallProver {
 public:
  explicit CallProver(std::string token) : token_(std::move(token)) {}

  bool has_token() const { return !token_.empty(); }
  // Returns the metadata of the next call.
  absl::StatusOr<std::string> Show(const std::string& asked);
  // Takes the metadata of a refusal. Returns true if it holds a challenge; the
  // call can then be tried again.
  bool TakeChallenge(const std::string& shown);
  // Checks the metadata of the answer to the last Show. Returns Unauthenticated
  // unless it proves that the rendezvous knows the token.
  absl::Status CheckAnswer(const std::string& shown) const;

 private:
  const std::string token_;
  std::string challenge_;
  uint64_t number_ = 0;
  std::string expected_;  // the proof that the answer must carry
};

// The rendezvous' side. Thread-safe.
class CallGuard {
 public:
  using Clock = std::chrono::steady_clock;
  // How long a challenge is valid.
  static constexpr std::chrono::seconds kChallengeLife{60};

  explicit CallGuard(std::string token);

  // Checks `shown`, the metadata of a call with the request `asked`. Returns
  // Unauthenticated unless it proves that the caller knows the token and it was
  // not used before. `answer` is set to the metadata of the answer, however the
  // call ends.
  absl::Status Check(const std::string& shown, const std::string& asked,
                     Clock::time_point now, std::string* answer);

 private:
  struct Heard {
    uint64_t number = 0;  // the last number
    Clock::time_point until;
  };

  absl::Status Challenge(Clock::time_point now, const char* why,
                         std::string* answer) const;
  // Until when the challenge is valid; the distant past for one that this guard
  // has not made.
  Clock::time_point EndOf(const std::string& challenge) const;
  bool IsNew(const std::string& challenge, uint64_t number,
             Clock::time_point now, Clock::time_point until);

  const std::string token_;
  const absl::StatusOr<std::string> key_;  // authenticates its challenges

  Mutex mutex_;
  // By challenge. Only callers that know the token get an entry.
  std::map<std::string, Heard> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton::rpc::internal
