// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/link_paths.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "models/distributed/pipeline_link.h"

namespace baton::examples {
namespace {

// A path, and what a pair of workers needs to have it.
struct KnownPath {
  const char* path;
  const char* needs;
};
constexpr KnownPath kKnown[] = {
    {"window",
     "both workers on one machine, as one user, and each in a "
     "process of its own"},
    {"shared memory",
     "both workers on one machine, as one user, and values "
     "of the CPU of more than 16 KiB"},
    {"cuda ipc",
     "both workers on one machine, as one user, and GPUs that "
     "reach each other (--device=cuda)"},
    {"tcp",
     "values of more than 16 KiB, and a network that they may cross in "
     "clear"},
    {"grpc", "no better path between the two"},
};

absl::Status CheckPath(const std::vector<std::string>& required,
                       const dist::PipelineLink& link) {
  if (link.sender == link.receiver ||
      std::find(required.begin(), required.end(), link.path) != required.end())
    return absl::OkStatus();
  std::vector<std::string> needs;
  if (!link.why_no_window.empty())
    needs.push_back(absl::StrCat("there is no window ", link.why_no_window));
  for (const KnownPath& known : kKnown) {
    if (std::find(required.begin(), required.end(), known.path) !=
        required.end())
      needs.push_back(absl::StrCat(known.path, " needs ", known.needs));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the link from stage ", link.from, " (", link.sender, ") to stage ",
      link.to, " (", link.receiver, ") has the path ", link.path,
      ", but --require_path=", absl::StrJoin(required, ","), ": ",
      absl::StrJoin(needs, "; "),
      "; batonctl channels says why a pair has no better one"));
}

}  // namespace

std::vector<std::string> KnownPaths() {
  std::vector<std::string> paths;
  for (const KnownPath& known : kKnown) paths.emplace_back(known.path);
  return paths;
}

absl::Status AddPaths(const PipelineSettings& settings, const Trainable& model,
                      Measurement& measurement) {
  ASSIGN_OR_RETURN(const std::vector<dist::PipelineLink> links, model.Links());
  std::vector<StagePath> paths;
  for (const dist::PipelineLink& link : links)
    paths.push_back({link.from, link.to, link.path, link.why_no_window});
  if (!paths.empty()) measurement.details.push_back({"paths", paths});
  for (const dist::PipelineLink& link : links) {
    if (!settings.require_path.empty())
      RETURN_IF_ERROR(CheckPath(settings.require_path, link));
  }
  return absl::OkStatus();
}

}  // namespace baton::examples
