// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Makes the certificates and the token of a cluster:
//   baton-certs --out=certs worker1 worker2 trainer

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "tools/certificates.h"
#include "tools/command_line.h"

ABSL_FLAG(std::string, out, "", "folder to write to; made if need be");
ABSL_FLAG(int, days, 30, "how long the certificates are good");

namespace baton::tools {
namespace {

constexpr char kUsage[] =
    "usage: baton-certs --out=FOLDER NAME...\n"
    "Makes an authority, a token, and for each worker named, for a rendezvous\n"
    "and for batonctl a certificate with its key. Give each machine the files\n"
    "of its workers, ca.pem and token, and every program --tls_dir=FOLDER. "
    "Keep\n"
    "ca.key to yourself: who has it can be any worker.";

// The clocks of machines differ a little.
constexpr absl::Duration kClockSkew = absl::Minutes(5);

absl::Status Main(const std::vector<std::string>& workers) {
  const std::string folder = absl::GetFlag(FLAGS_out);
  if (folder.empty() || workers.empty()) {
    return absl::InvalidArgumentError(
        "give a folder and the workers: baton-certs --out=certs worker1 "
        "trainer");
  }
  RETURN_IF_ERROR(AtLeast(1, FLAGS_days));
  const absl::Time now = absl::Now();
  const absl::Time until = now + absl::Hours(24) * absl::GetFlag(FLAGS_days);
  RETURN_IF_ERROR(
      WriteCertificates(folder, workers, {now - kClockSkew, until}));
  std::printf("%s: good until %s; start programs with --tls_dir=%s\n",
              folder.c_str(),
              absl::FormatTime("%Y-%m-%d", until, absl::UTCTimeZone()).c_str(),
              folder.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::tools

int main(int argc, char** argv) {
  using namespace baton::tools;
  return ExitCode(Main(ParseFlagsOrExit(argc, argv, kUsage)));
}
