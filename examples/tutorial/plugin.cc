// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

// [plugin]
#include "baton/rpc/plugin.h"

#include "part.h"

BATON_PLUGIN("part", AddPart);
// [end]
