// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

// Which samples of a data set an epoch has, and in which order. A sampler is a
// function of the epoch alone, without a state: an epoch that is begun again at
// any place, by any loader, has the same order. All throw Error for options
// that make no sense. Thread-safe.
namespace baton::data {

class Sampler {
 public:
  virtual ~Sampler() = default;

  virtual int64_t size() const = 0;  // samples in an epoch
  virtual std::vector<int64_t> Order(int64_t epoch) const = 0;
  // Numbers that differ where orders do: a loader's state holds them, so that
  // it is not gone on with in another order.
  virtual std::vector<int64_t> Identity() const = 0;
};

// 0 .. count - 1 in the order of torch.randperm(count) with a generator of this
// seed, for fewer than 200 million, so that runs of PyTorch can be repeated.
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
  bool replacement = false;  // each sample is drawn of all
  // In an epoch; 0: as many as the data set has. Without replacement more are
  // whole permutations, and then a part of one.
  int64_t samples = 0;
};

// As PyTorch's with a generator of the epoch's seed.
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

// Draws sample i with a probability that weights[i], from 0, is proportional
// to; without replacement, of those that are left. Its random numbers are
// Baton's own.
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
  // Where ranks do not divide the samples: whether the tail is left out, or the
  // first samples are given once more.
  bool drop_last = false;
};

// Every rank's share of an epoch, all of one size, as PyTorch's
// DistributedSampler deals them out: of the shuffled samples every ranks-th
// one, from the rank's own on.
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

// Which samples an epoch's batches have.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;

  virtual int64_t batches() const = 0;  // in an epoch
  // `batches()` of them, none empty.
  virtual std::vector<std::vector<int64_t>> Batches(int64_t epoch) const = 0;
  virtual std::vector<int64_t> Identity() const = 0;  // as a Sampler's
};

// A sampler's order, cut every `batch` samples.
class FixedBatches final : public BatchSampler {
 public:
  // `drop_last`: without a last batch that is smaller.
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
