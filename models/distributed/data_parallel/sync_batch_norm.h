// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "models/nn/module.h"
#include "rpc/collectives/process_group.h"

namespace baton::dist {

// From now on every nn::BatchNorm2d of the module, and of those below it,
// trains by the statistics of the batches of all members of the group taken as
// one, whatever their sizes: so that data parallel is what one process does
// with the whole batch. All members call it for the same model and run that in
// the same order, forward and backward, whatever else the group does between:
// none may have fewer steps (Join). What goes wrong at one breaks the group.
//
// Forward and backward wait for the other members, on a GPU there alone, so
// that steps can be recorded (nn::GraphedStep). The group must take the device
// of what is normalised. The module keeps the group.
void SynchroniseBatchNorms(nn::Module& module,
                           std::shared_ptr<rpc::ProcessGroup> group);

}  // namespace baton::dist
