// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/conv_tuning.h"

#include <atomic>

#include "core/conv_choices.h"

namespace baton {
namespace {

std::atomic<bool> search_on{true};
std::atomic<int64_t> workspace_limit{int64_t{1} << 30};

}  // namespace

void SetConvSearch(bool search) { search_on = search; }
bool ConvSearch() { return search_on; }

void SetConvCacheFile(const std::string& path) {
  ConvChoices::OfProcess().UseFile(path);
}

void SetConvWorkspaceLimit(int64_t bytes) { workspace_limit = bytes; }
int64_t ConvWorkspaceLimit() { return workspace_limit; }

}  // namespace baton
