// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// Run by mpirun: what tests/CMakeLists.txt expects of a cluster out of
// MPI_COMM_WORLD and of half of it. Prints what went wrong and ends with 1.

#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/tensor.h"
#include "models/distributed/module.h"
#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"
#include "tools/mpi/join_mpi.h"

namespace baton {
namespace {

struct Twice final : nn::Module {
  Variable Forward(const Variable& x) override {
    return Variable(Tensor::Full(
        x.shape(), 2 * x.tensor().Reshape({-1}).Select(0, 0).Item()));
  }
  using Exports = rpc::Methods<rpc::kConstructor<>, &Twice::Forward>;
};

absl::Status Expect(bool holds, const std::string& what) {
  return holds ? absl::OkStatus() : absl::InternalError(what);
}

// Ranks as in `comm`, a sum over all, and a module at the last.
absl::Status Train(MPI_Comm comm) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  ASSIGN_OR_RETURN(const auto agent, tools::JoinMpi<Twice>(comm));
  RETURN_IF_ERROR(Expect(static_cast<int>(agent->self().rank) == rank,
                         "the rank is not MPI's"));
  ASSIGN_OR_RETURN(const auto group, rpc::ProcessGroup::Make(*agent).Await());
  RETURN_IF_ERROR(Expect(group->rank() == rank && group->size() == size,
                         "the group's ranks are not MPI's"));
  const Tensor sum = Tensor::Full({3}, rank + 1);
  RETURN_IF_ERROR(group->AllReduce(sum).Await());
  RETURN_IF_ERROR(Expect(
      sum.ToVector<float>()[2] == static_cast<float>(size * (size + 1) / 2),
      absl::StrCat("the sum is ", sum.ToString())));
  if (rank == 0) {
    ASSIGN_OR_RETURN(
        const auto module,
        dist::Module<Twice>::Create(*agent, absl::StrCat("rank", size - 1))
            .Await());
    dist::Context ctx(*agent);
    ASSIGN_OR_RETURN(const Variable y,
                     module.Forward(ctx, Tensor::Full({2}, 4)).Await());
    RETURN_IF_ERROR(Expect(y.tensor().ToVector<float>()[1] == 8, "not twice"));
  }
  RETURN_IF_ERROR(group->Barrier().Await());
  return agent->Shutdown();
}

// Rank 0 cannot listen there: the others must hear of it.
absl::Status RefusedHost(MPI_Comm comm) {
  rpc::ClusterOptions options;
  options.listen = "no-such-host.invalid:1";
  const auto agent = tools::JoinMpi<>(comm, options);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) return Expect(!agent.ok(), "rank 0 listened nowhere");
  return Expect(absl::IsUnavailable(agent.status()) &&
                    absl::StrContains(agent.status().message(),
                                      "rank0, rank 0, could not host"),
                agent.status().ToString());
}

absl::Status Run() {
  RETURN_IF_ERROR(Train(MPI_COMM_WORLD));
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  RETURN_IF_ERROR(Train(half));
  MPI_Comm_free(&half);
  return RefusedHost(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const absl::Status status = baton::Run();
  if (!status.ok()) std::printf("%s\n", status.ToString().c_str());
  if (!status.ok()) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  std::printf("as MPI has them\n");
  return 0;
}
