// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/mpi/join_mpi.h"

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace baton::tools::internal {
namespace {

// An address is host:port or unix:path, and a name has at most 127 letters.
constexpr int kMostLetters = 1024;

absl::Status Checked(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat(call, ": ", text));
}

// Returns rank 0's text at all ranks.
absl::StatusOr<std::string> Broadcast(MPI_Comm comm, const std::string& text) {
  char letters[kMostLetters] = {};
  if (text.size() >= kMostLetters)
    return absl::InvalidArgumentError(absl::StrCat("too long: ", text));
  std::memcpy(letters, text.data(), text.size());
  RETURN_IF_ERROR(Checked(MPI_Bcast(letters, kMostLetters, MPI_CHAR, 0, comm),
                          "MPI_Bcast"));
  return std::string(letters);
}

// Collective: all ranks must call it.
absl::StatusOr<bool> OnOneMachine(MPI_Comm comm, int size) {
  MPI_Comm here = MPI_COMM_NULL;
  RETURN_IF_ERROR(Checked(
      MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here),
      "MPI_Comm_split_type"));
  int size_here = 0;
  MPI_Comm_size(here, &size_here);
  MPI_Comm_free(&here);
  return size_here == size;
}

absl::Status SetListen(MPI_Comm comm, rpc::ClusterOptions& options) {
  ASSIGN_OR_RETURN(const bool one_machine,
                   OnOneMachine(comm, options.world_size));
  if (one_machine || options.listen != rpc::ClusterOptions().listen)
    return absl::OkStatus();
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  RETURN_IF_ERROR(
      Checked(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name"));
  options.listen = absl::StrCat(name, ":0");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinAsHost(
    MPI_Comm comm, rpc::ClusterOptions options, const JoinRank& join) {
  bool told = false;
  options.on_rendezvous = [comm, &told](const std::string& address) {
    told = true;
    return Broadcast(comm, address).status();
  };
  auto agent = join(std::move(options));
  // The other ranks wait for an address even if there is an error.
  if (!told) Broadcast(comm, "").status().IgnoreError();
  return agent;
}

}  // namespace

absl::StatusOr<std::unique_ptr<rpc::Agent>> JoinComm(
    MPI_Comm comm, rpc::ClusterOptions options, const JoinRank& join) {
  RETURN_IF_ERROR(Checked(MPI_Comm_rank(comm, &options.rank), "MPI_Comm_rank"));
  RETURN_IF_ERROR(
      Checked(MPI_Comm_size(comm, &options.world_size), "MPI_Comm_size"));
  if (options.name.empty()) options.name = absl::StrCat("rank", options.rank);
  options.peers.clear();
  options.rendezvous.clear();
  RETURN_IF_ERROR(SetListen(comm, options));
  ASSIGN_OR_RETURN(options.rendezvous_host, Broadcast(comm, options.name));
  if (options.rank == 0) return JoinAsHost(comm, std::move(options), join);
  ASSIGN_OR_RETURN(options.rendezvous, Broadcast(comm, ""));
  if (options.rendezvous.empty()) {
    return absl::UnavailableError(absl::StrCat(
        options.rendezvous_host, ", rank 0, could not host the rendezvous"));
  }
  return join(std::move(options));
}

}  // namespace baton::tools::internal
