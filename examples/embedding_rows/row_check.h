// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor.h"
#include "examples/embedding_rows/row_client.h"
#include "models/distributed/server/client.h"
#include "models/distributed/server/directory.h"
#include "rpc/agent.h"

namespace baton::examples {

// Compares the rows of the first table with the updates that its clients were
// told are done. Must not outlive the agent. Confined to one thread.
class RowCheck {
 public:
  // Reads the rows 0 .. rows - 1 as they are before the updates. Returns
  // InvalidArgument unless plain SGD steps them.
  static absl::StatusOr<std::unique_ptr<RowCheck>> Make(
      rpc::Agent& agent, const RRef<dist::ServerDirectory>& directory,
      int64_t rows);

  // Adds the updates of a client that has run the order to its end.
  void Add(const RowOrder& order);
  // Returns the number of updates so far. Returns DataLoss, which names a row,
  // if one has fewer of them; or more, unless `others` may have updated it.
  // With a rate that is a power of two, rows are steps of it apart exactly.
  absl::StatusOr<int64_t> Compare(bool others) const;

 private:
  RowCheck(std::unique_ptr<dist::ServerClient> reader, double step,
           int64_t rows);
  absl::StatusOr<Tensor> Read() const;

  const std::unique_ptr<dist::ServerClient> reader_;
  const double step_;  // what an update takes from each number of a row
  Tensor before_;
  std::vector<int64_t> updates_;  // of each row
};

}  // namespace baton::examples
