// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "core/status.h"
#include "models/data/sample_random.h"

namespace baton::data {
namespace {

// The first number of Identity.
enum SamplerKind : int64_t { kSequential, kRandom, kWeighted, kDistributed };

// PyTorch's CPU generator, which uses the low 32 bits of a seed.
class TorchRandom {
 public:
  explicit TorchRandom(uint64_t seed)
      : twister_(static_cast<uint32_t>(seed & 0xffffffffU)) {}

  // Returns a number in [0, count).
  int64_t Below(int64_t count) {
    uint64_t bits = twister_();
    // For large counts, 32 bits would favour small results.
    if (count >= std::numeric_limits<uint32_t>::max() / 20)
      bits = bits << 32 | twister_();
    return static_cast<int64_t>(bits % static_cast<uint64_t>(count));
  }

 private:
  std::mt19937 twister_;
};

uint64_t EpochSeed(uint64_t seed, int64_t epoch) {
  return seed + static_cast<uint64_t>(epoch);
}

std::vector<int64_t> Permuted(int64_t count, TorchRandom& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i + 1 < count; ++i) {
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(i + random.Below(count - i))]);
  }
  return order;
}

int64_t CheckedSize(const char* sampler, int64_t size) {
  Require(size > 0, sampler, "expected a data set with samples, got ", size);
  return size;
}

int64_t SamplesOf(const char* sampler, int64_t size, int64_t samples) {
  Require(samples >= 0, sampler, "expected samples from 0, got ", samples);
  return samples == 0 ? CheckedSize(sampler, size) : samples;
}

int64_t CheckedShare(int64_t size, const DistributedSamplerOptions& o) {
  constexpr char kName[] = "distributed_sampler";
  CheckedSize(kName, size);
  Require(o.ranks > 0 && o.rank >= 0 && o.rank < o.ranks, kName,
          "expected a rank in [0, ", o.ranks, "), got ", o.rank);
  const int64_t share =
      o.drop_last ? size / o.ranks : (size + o.ranks - 1) / o.ranks;
  Require(share > 0, kName, size, " samples are less than one for each of ",
          o.ranks, " ranks; turn drop_last off");
  return share;
}

}  // namespace

std::vector<int64_t> Permutation(int64_t count, uint64_t seed) {
  TorchRandom random(seed);
  return Permuted(count, random);
}

SequentialSampler::SequentialSampler(int64_t size)
    : size_(CheckedSize("sequential_sampler", size)) {}

std::vector<int64_t> SequentialSampler::Order(int64_t) const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int64_t> SequentialSampler::Identity() const {
  return {kSequential, size_};
}

RandomSampler::RandomSampler(int64_t size, const RandomSamplerOptions& options)
    : size_(CheckedSize("random_sampler", size)),
      samples_(SamplesOf("random_sampler", size, options.samples)),
      options_(options) {}

std::vector<int64_t> RandomSampler::Order(int64_t epoch) const {
  TorchRandom random(EpochSeed(options_.seed, epoch));
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(samples_));
  while (static_cast<int64_t>(order.size()) < samples_) {
    if (options_.replacement) {
      order.push_back(random.Below(size_));
      continue;
    }
    const std::vector<int64_t> all = Permuted(size_, random);
    const int64_t left = samples_ - static_cast<int64_t>(order.size());
    order.insert(order.end(), all.begin(), all.begin() + std::min(left, size_));
  }
  return order;
}

std::vector<int64_t> RandomSampler::Identity() const {
  return {kRandom, size_, samples_, options_.replacement,
          std::bit_cast<int64_t>(options_.seed)};
}

WeightedSampler::WeightedSampler(std::vector<double> weights,
                                 const WeightedSamplerOptions& options)
    : weights_(std::move(weights)),
      samples_(SamplesOf("weighted_sampler",
                         static_cast<int64_t>(weights_.size()),
                         options.samples)),
      options_(options) {
  constexpr char kName[] = "weighted_sampler";
  int64_t positive = 0;
  for (const double weight : weights_) {
    Require(std::isfinite(weight) && weight >= 0, kName,
            "expected weights from 0, got ", weight);
    positive += weight > 0;
  }
  Require(positive >= (options.replacement ? 1 : samples_), kName, positive,
          " samples have a weight above 0, of which ", samples_,
          " cannot be drawn");
}

std::vector<int64_t> WeightedSampler::Order(int64_t epoch) const {
  SampleRandom random(options_.seed, static_cast<uint64_t>(epoch));
  if (options_.replacement) {
    std::vector<double> sums(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
    // Rounding may place a draw past the end; this is the last sample whose
    // weight is not 0.
    const auto last = std::lower_bound(sums.begin(), sums.end(), sums.back());
    std::vector<int64_t> order;
    for (int64_t i = 0; i < samples_; ++i) {
      const auto drawn =
          std::min(std::upper_bound(sums.begin(), sums.end(),
                                    random.Uniform() * sums.back()),
                   last);
      order.push_back(drawn - sums.begin());
    }
    return order;
  }
  // Takes the greatest log(u) / weight, in descending order (Efraimidis and
  // Spirakis, "Weighted random sampling with a reservoir", 2006).
  std::vector<std::pair<double, int64_t>> keys;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double u = 1 - random.Uniform();
    if (weights_[i] > 0)
      keys.emplace_back(-std::log(u) / weights_[i], static_cast<int64_t>(i));
  }
  std::partial_sort(keys.begin(), keys.begin() + samples_, keys.end());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < samples_; ++i)
    order.push_back(keys[static_cast<size_t>(i)].second);
  return order;
}

std::vector<int64_t> WeightedSampler::Identity() const {
  uint64_t all = 0;
  for (const double weight : weights_)
    all = SampleRandom(all, std::bit_cast<uint64_t>(weight)).Next();
  return {kWeighted,
          static_cast<int64_t>(weights_.size()),
          std::bit_cast<int64_t>(all),
          samples_,
          options_.replacement,
          std::bit_cast<int64_t>(options_.seed)};
}

DistributedSampler::DistributedSampler(int64_t size,
                                       const DistributedSamplerOptions& options)
    : size_(size), options_(options), share_(CheckedShare(size, options)) {}

std::vector<int64_t> DistributedSampler::Order(int64_t epoch) const {
  const std::vector<int64_t> all =
      options_.shuffle ? Permutation(size_, EpochSeed(options_.seed, epoch))
                       : SequentialSampler(size_).Order(epoch);
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(share_));
  for (int64_t i = 0; i < share_; ++i) {
    const int64_t at = options_.rank + i * options_.ranks;
    order.push_back(all[static_cast<size_t>(at % size_)]);
  }
  return order;
}

std::vector<int64_t> DistributedSampler::Identity() const {
  return {kDistributed,      size_,
          options_.ranks,    options_.rank,
          options_.shuffle,  std::bit_cast<int64_t>(options_.seed),
          options_.drop_last};
}

FixedBatches::FixedBatches(std::shared_ptr<const Sampler> sampler,
                           int64_t batch, bool drop_last)
    : sampler_(std::move(sampler)), batch_(batch), drop_last_(drop_last) {
  constexpr char kName[] = "fixed_batches";
  Require(sampler_ != nullptr, kName, "no sampler");
  Require(batch_ > 0, kName, "expected batch >= 1, got ", batch_);
  Require(batches() > 0, kName, sampler_->size(),
          " samples make no whole batch of ", batch_,
          "; turn drop_last off or take smaller batches");
}

int64_t FixedBatches::batches() const {
  return (sampler_->size() + (drop_last_ ? 0 : batch_ - 1)) / batch_;
}

std::vector<std::vector<int64_t>> FixedBatches::Batches(int64_t epoch) const {
  const std::vector<int64_t> order = sampler_->Order(epoch);
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < batches(); ++i) {
    const auto begin = order.begin() + i * batch_;
    all.emplace_back(begin, begin + std::min(batch_, order.end() - begin));
  }
  return all;
}

std::vector<int64_t> FixedBatches::Identity() const {
  std::vector<int64_t> identity = sampler_->Identity();
  identity.insert(identity.end(), {batch_, drop_last_});
  return identity;
}

}  // namespace baton::data
