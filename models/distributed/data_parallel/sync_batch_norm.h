// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// Makes every nn::BatchNorm2d in the module train with the statistics of the
// batches of all members of the group together, whatever their sizes, so that
// data parallel training equals one process with the whole batch. All members
// must call this for the same model and then run it in the same order, forward
// and backward, regardless of the group's other calls; none may take fewer
// steps (Join). An error at one member breaks the group.
//
// Forward and backward wait for the other members; on a GPU only the GPU waits,
// so that steps can be recorded (nn::GraphedStep). The group must support the
// device of the normalized values. The module keeps the group alive.
void SynchroniseBatchNorms(nn::Module& module,
                           std::shared_ptr<rpc::ProcessGroup> group);

}  // namespace baton::dist
