// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "baton/rpc/plugin.h"

#include "perceptron.h"

BATON_PLUGIN("perceptron", AddPerceptron);
