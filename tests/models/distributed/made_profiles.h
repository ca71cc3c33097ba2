// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/distributed/profile.h"

// Profiles of models and workers that do not exist, to make plans for.
namespace baton::dist {

// Costs in proportion to the rows, plus so many seconds each micro-batch.
inline Profile Made(const std::vector<StageCosts>& seconds_of_row,
                    double slowness = 1, double overhead = 0) {
  Profile profile;
  profile.rows = {1, 1000};
  profile.costs.resize(2);
  for (size_t unit = 0; unit < seconds_of_row.size(); ++unit) {
    profile.units.push_back(absl::StrCat("unit.", unit));
    profile.parameter_bytes.push_back(1000);
    for (size_t at = 0; at < 2; ++at) {
      const auto rows = static_cast<double>(profile.rows[at]);
      const auto [f, b, w] = seconds_of_row[unit];
      const auto takes = [&](double row) {
        return slowness * (rows * row + overhead);
      };
      profile.costs[at].push_back(
          {{takes(f), takes(b), takes(w)}, 100 * rows, 10 * rows});
    }
  }
  profile.input_bytes = 10;
  return profile;
}

inline ClusterProfile Cluster(std::vector<Profile> workers,
                              LinkCosts link = {}) {
  ClusterProfile profile;
  const size_t count = workers.size();
  profile.workers = std::move(workers);
  profile.links.assign(count, std::vector<LinkCosts>(count, link));
  for (size_t i = 0; i < count; ++i) profile.links[i][i] = {};
  return profile;
}

// Equal workers, equal units of 1 + 1 + 1 s a row.
inline ClusterProfile EvenProfile(size_t units, size_t workers,
                                  LinkCosts link = {}) {
  const std::vector<StageCosts> costs(units, {1, 1, 1});
  return Cluster(std::vector<Profile>(workers, Made(costs)), link);
}

}  // namespace baton::dist
