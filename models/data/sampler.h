// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

// Which samples of a data set an epoch has, and in which order. A sampler is a
// stateless function of the epoch: an epoch has the same order whenever and by
// whichever loader it is started again. All constructors throw Error if the
// options are invalid. Thread-safe.
namespace baton::data {

class Sampler {
 public:
  virtual ~Sampler() = default;

  virtual int64_t size() const = 0;  // samples in an epoch
  virtual std::vector<int64_t> Order(int64_t epoch) const = 0;
  // Returns numbers that differ if the orders differ. A loader's state holds
  // them, so that it is not resumed with another order.
  virtual std::vector<int64_t> Identity() const = 0;
};

// Returns 0 .. count - 1 in the order of torch.randperm(count) with a generator
// of this seed, so that runs of PyTorch can be repeated. The order is PyTorch's
// for counts below 200 million.
std::vector<int64_t> Permutation(int64_t count, uint64_t seed);

class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(int64_t size);
  int64_t size() const override { return size_; }
  std::vector<int64_t> Order(int64_t epoch) const override;
  std::vector<int64_t> Identity() const override;

 private:
  const int64_t size_;
};

struct RandomSamplerOptions {
  uint64_t seed = 0;         // an epoch's is seed + epoch
  bool replacement = false;  // each sample is drawn from all
  // The samples in an epoch; 0: as many as the data set has. Without
  // replacement, a larger number takes whole permutations and then part of one.
  int64_t samples = 0;
};

// Orders samples as PyTorch's RandomSampler does with a generator of the
// epoch's seed.
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(int64_t size,
                         const RandomSamplerOptions& options = {});
  int64_t size() const override { return samples_; }
  std::vector<int64_t> Order(int64_t epoch) const override;
  std::vector<int64_t> Identity() const override;

 private:
  const int64_t size_, samples_;
  const RandomSamplerOptions options_;
};

struct WeightedSamplerOptions {
  int64_t samples = 0;  // in an epoch; 0: as many as there are weights
  bool replacement = true;
  uint64_t seed = 0;
};

// Draws sample i with a probability proportional to weights[i], which is 0 or
// more; without replacement, from those that are left. Its random numbers
// differ from PyTorch's.
class WeightedSampler final : public Sampler {
 public:
  explicit WeightedSampler(std::vector<double> weights,
                           const WeightedSamplerOptions& options = {});
  int64_t size() const override { return samples_; }
  std::vector<int64_t> Order(int64_t epoch) const override;
  std::vector<int64_t> Identity() const override;

 private:
  const std::vector<double> weights_;
  const int64_t samples_;
  const WeightedSamplerOptions options_;
};

struct DistributedSamplerOptions {
  int64_t ranks = 1;
  int64_t rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;  // an epoch's is seed + epoch, the same for all ranks
  // If the number of ranks does not divide that of the samples: true leaves out
  // the last samples, false repeats the first ones.
  bool drop_last = false;
};

// Gives each rank an equal share of an epoch, the same as PyTorch's
// DistributedSampler: every ranks-th of the shuffled samples, beginning with
// sample `rank`.
class DistributedSampler final : public Sampler {
 public:
  DistributedSampler(int64_t size, const DistributedSamplerOptions& options);
  int64_t size() const override { return share_; }
  std::vector<int64_t> Order(int64_t epoch) const override;
  std::vector<int64_t> Identity() const override;

 private:
  const int64_t size_;
  const DistributedSamplerOptions options_;
  const int64_t share_;
};

// Determines the samples of each batch of an epoch.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;

  virtual int64_t batches() const = 0;  // in an epoch
  // Returns the samples of each of the `batches()` batches; none is empty.
  virtual std::vector<std::vector<int64_t>> Batches(int64_t epoch) const = 0;
  virtual std::vector<int64_t> Identity() const = 0;  // as a Sampler's
};

// Divides a sampler's order into batches of `batch` samples.
class FixedBatches final : public BatchSampler {
 public:
  // `drop_last` leaves out a last batch that is smaller.
  FixedBatches(std::shared_ptr<const Sampler> sampler, int64_t batch,
               bool drop_last = false);
  int64_t batches() const override;
  std::vector<std::vector<int64_t>> Batches(int64_t epoch) const override;
  std::vector<int64_t> Identity() const override;

 private:
  const std::shared_ptr<const Sampler> sampler_;
  const int64_t batch_;
  const bool drop_last_;
};

}  // namespace baton::data
