// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cuda/nccl/library.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/cuda/nccl_group.h"
#include "core/cuda/shared_library.h"
#include "core/status.h"

namespace baton::cuda {
namespace {

std::string Dotted(int version) {
  return absl::StrCat(version / 10'000, ".", version / 100 % 100, ".",
                      version % 100);
}

// A library reads only those fields of a communicator's configuration that it
// knows, also of a newer header's.
constexpr int kLeastVersion = NCCL_VERSION(2, 18, 0);

absl::Status CheckVersion(Nccl& nccl) {
  int version = 0;
  RETURN_IF_ERROR(
      nccl.StatusOf("version", nccl.get_version(&version), nullptr));
  nccl.version = Dotted(version);
  if (version / 10'000 == NCCL_MAJOR && version >= kLeastVersion)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      BATON_NCCL_SONAME, " is of version ", nccl.version, ", and this needs ",
      NCCL_MAJOR, ".x from ", Dotted(kLeastVersion)));
}

absl::StatusOr<Nccl> Open() {
  ASSIGN_OR_RETURN(
      const SharedLibrary library,
      SharedLibrary::Open("NCCL", BATON_NCCL_SONAME, BATON_NCCL_LIBRARY));
  Nccl nccl{};
  RETURN_IF_ERROR(library.Find("ncclGetVersion", nccl.get_version));
  RETURN_IF_ERROR(library.Find("ncclGetUniqueId", nccl.get_unique_id));
  RETURN_IF_ERROR(library.Find("ncclGetErrorString", nccl.get_error_string));
  RETURN_IF_ERROR(library.Find("ncclGetLastError", nccl.get_last_error));
  RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", nccl.init));
  RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", nccl.get_async_error));
  RETURN_IF_ERROR(library.Find("ncclCommAbort", nccl.abort));
  RETURN_IF_ERROR(library.Find("ncclGroupStart", nccl.group_start));
  RETURN_IF_ERROR(library.Find("ncclGroupEnd", nccl.group_end));
  RETURN_IF_ERROR(library.Find("ncclAllReduce", nccl.all_reduce));
  RETURN_IF_ERROR(library.Find("ncclBroadcast", nccl.broadcast));
  RETURN_IF_ERROR(library.Find("ncclReduce", nccl.reduce));
  RETURN_IF_ERROR(library.Find("ncclAllGather", nccl.all_gather));
  RETURN_IF_ERROR(library.Find("ncclReduceScatter", nccl.reduce_scatter));
  RETURN_IF_ERROR(library.Find("ncclSend", nccl.send));
  RETURN_IF_ERROR(library.Find("ncclRecv", nccl.recv));
  RETURN_IF_ERROR(CheckVersion(nccl));
  return nccl;
}

}  // namespace

absl::Status Nccl::StatusOf(const char* what, ncclResult_t result,
                            ncclComm_t comm) const {
  if (result == ncclSuccess || result == ncclInProgress)
    return absl::OkStatus();
  const char* text = get_error_string(result);
  const char* detail = get_last_error(comm);
  std::string words =
      absl::StrCat("NCCL: ", what, ": ", text == nullptr ? "" : text);
  if (detail != nullptr && *detail != '\0')
    absl::StrAppend(&words, " (", detail, ")");
  return absl::UnavailableError(words);
}

const absl::StatusOr<Nccl>& OpenNccl() {
  static const auto* const nccl = new absl::StatusOr<Nccl>(Open());
  return *nccl;
}

absl::StatusOr<std::string> NcclVersion() {
  RETURN_IF_ERROR(OpenNccl().status());
  return OpenNccl()->version;
}

absl::StatusOr<std::string> NewNcclId() {
  RETURN_IF_ERROR(OpenNccl().status());
  const Nccl& nccl = *OpenNccl();
  ncclUniqueId id{};
  RETURN_IF_ERROR(nccl.StatusOf("a new id", nccl.get_unique_id(&id), nullptr));
  return std::string(id.internal, sizeof(id.internal));
}

}  // namespace baton::cuda
