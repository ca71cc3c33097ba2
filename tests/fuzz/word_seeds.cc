// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// What users type, and what they are given to start with.

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/fuzz/seeds.h"
#include "tools/certificates.h"

namespace baton::fuzz {

void SaveWordSeeds() {
  Save("words", "address", "127.0.0.1:2900");
  Save("words", "ipv6", "[::1]:80");
  Save("words", "list", "alice=a:1,bob=[::1]:2,carol=unix:/tmp/s");
  Save("words", "targets", "10.0.0.1:5;unix:/tmp/baton-1/s");
  Save("words", "cores", "0-2,5");
  Save("words", "device", "cuda:1");
  Save("words", "flags", "--help\n--no-such=1\n--\nrest");
  const tools::Validity day{absl::UnixEpoch(),
                            absl::UnixEpoch() + absl::Hours(24)};
  const auto authority = tools::MakeAuthority("Seed", day);
  const auto own = tools::MakeCertificate(*authority, {"alice", "bob"}, day);
  // Without keys: nobody's business, but scanners would ask.
  Save("certificates", "expired",
       Chunk(own->certificate) + Chunk("-----BEGIN PRIVATE KEY-----\n") +
           authority->certificate);
}

}  // namespace baton::fuzz
