// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// What nearly every test of modules at workers includes; CMake hands it to all
// of them compiled. Each test includes what it uses all the same.
#include "models/distributed/module.h"
#include "models/distributed/pipeline.h"
#include "tests/support/precompiled.h"
