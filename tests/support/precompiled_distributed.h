// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// What nearly every test of remote modules includes. CMake precompiles it for
// them; each test still includes what it uses.
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "tests/support/precompiled.h"
