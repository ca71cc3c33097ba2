// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

extern "C" int Answer() { return 42; }
