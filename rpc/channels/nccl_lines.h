// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "core/tensor.h"
#include "rpc/channels/nccl_gpu.h"
#include "rpc/channels/nccl_receipts.h"
#include "rpc/channels/nccl_sends.h"
#include "rpc/channels/nccl_traffic.h"

namespace baton::rpc {

// The two lines between two workers, and what they owe. NCCL may take long to
// let go of them, or not do so: then writers of what was sent, and the worker's
// other sends, go on after `patience`, with a warning. Thread-safe.
class NcclLines {
 public:
  NcclLines(std::shared_ptr<NcclTraffic> traffic,
            std::shared_ptr<NcclSends> sends,
            std::shared_ptr<NcclReceipts> receipts,
            std::chrono::milliseconds patience);
  ~NcclLines() { Abort(); }

  // They come one after the other; false once they were aborted.
  bool Add(std::shared_ptr<cuda::NcclLine> line);
  // What they use beside tensors that were exported or imported stays as long.
  void Keep(const Tensor& tensor);
  // On threads of its own, when the sends of other ends have ended, or after
  // `patience`: aborts them, and then gives up what was sent and received. Only
  // the first call does anything.
  void Abort();

 private:
  const std::shared_ptr<NcclTraffic> traffic_;
  const std::shared_ptr<NcclSends> sends_;
  const std::shared_ptr<NcclReceipts> receipts_;
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<cuda::NcclLine>> lines_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> kept_ ABSL_GUARDED_BY(mutex_);
};

// Aborts a line that nothing has used, on a thread of its own.
void AbortLine(std::shared_ptr<cuda::NcclLine> line,
               const std::shared_ptr<NcclTraffic>& traffic,
               std::chrono::milliseconds patience);

// Until all that was to be aborted in this process has been; false if that
// takes longer.
bool AwaitAborts(std::chrono::milliseconds limit);

}  // namespace baton::rpc
