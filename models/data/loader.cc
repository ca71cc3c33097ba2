// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/loader.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/parallel.h"
#include "core/status.h"

namespace baton::data {
namespace {

constexpr char kPosition[] = "position";
constexpr char kOrder[] = "order";

absl::Status Check(const Dataset* dataset, const LoaderOptions& o) {
  if (dataset == nullptr || dataset->size() == 0)
    return absl::InvalidArgumentError("Loader: the data set is empty");
  if (o.batch < 1 || o.workers < 0 || o.prefetch < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        "Loader: expected batch >= 1, workers >= 0 and prefetch >= 1, got ",
        o.batch, ", ", o.workers, " and ", o.prefetch));
  if (o.drop_last && o.batch > dataset->size())
    return absl::InvalidArgumentError(absl::StrCat(
        "Loader: ", dataset->size(), " samples make no whole batch of ",
        o.batch, "; turn drop_last off or take smaller batches"));
  return absl::OkStatus();
}

int64_t CountBatches(int64_t samples, const LoaderOptions& o) {
  return (samples + (o.drop_last ? 0 : o.batch - 1)) / o.batch;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Make(
    std::shared_ptr<const Dataset> dataset, LoaderOptions options) {
  RETURN_IF_ERROR(Check(dataset.get(), options));
  return std::unique_ptr<Loader>(
      new Loader(std::move(dataset), std::move(options)));
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      batches_(CountBatches(dataset_->size(), options_)),
      epoch_(MakeEpoch(0)) {
  for (int i = 0; i < options_.workers; ++i)
    threads_.emplace_back([this] { Work(); });
}

Loader::~Loader() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

int64_t Loader::samples() const {
  return std::min(dataset_->size(), batches_ * options_.batch);
}

std::shared_ptr<const Loader::Epoch> Loader::MakeEpoch(int64_t number) const {
  auto epoch = std::make_shared<Epoch>();
  epoch->number = number;
  epoch->order.resize(static_cast<size_t>(dataset_->size()));
  std::iota(epoch->order.begin(), epoch->order.end(), 0);
  if (options_.shuffle) {
    // Fisher and Yates.
    SampleRandom random(options_.seed, static_cast<uint64_t>(number), ~0ULL);
    for (size_t i = epoch->order.size(); i > 1; --i) {
      const auto j = static_cast<size_t>(random.Below(static_cast<int64_t>(i)));
      std::swap(epoch->order[i - 1], epoch->order[j]);
    }
  }
  return epoch;
}

void Loader::StartAt(int64_t epoch, int64_t batch) {
  auto fresh = MakeEpoch(epoch);
  number_ = epoch;
  next_ = batch;
  MutexLock lock(mutex_);
  epoch_ = std::move(fresh);
  begun_ = batch;
  taken_ = batch;
  ready_.clear();
  work_.NotifyAll();
}

std::vector<int64_t> Loader::Order() const {
  return {dataset_->size(), options_.batch, options_.shuffle,
          std::bit_cast<int64_t>(options_.seed), options_.drop_last};
}

std::map<std::string, Tensor> Loader::ExportState() const {
  return {{kPosition, Tensor::From<int64_t>({number_, next_})},
          {kOrder, Tensor::From(Order())}};
}

absl::Status Loader::ImportState(const std::map<std::string, Tensor>& state) {
  const auto numbers = [&](const char* key) {
    const auto found = state.find(key);
    return found == state.end() ? std::vector<int64_t>()
                                : found->second.ToVector<int64_t>();
  };
  std::vector<int64_t> position, order;
  RETURN_IF_ERROR(CatchErrors([&] {
    position = numbers(kPosition);
    order = numbers(kOrder);
  }));
  if (order != Order()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Loader: the state is of samples, batch, shuffle, seed and drop_last ",
        absl::StrJoin(order, ", "), "; this loader has ",
        absl::StrJoin(Order(), ", ")));
  }
  if (position.size() != 2 || position[0] < 0 || position[1] < 0 ||
      position[1] > batches_)
    return absl::InvalidArgumentError("Loader: the state has no position");
  StartAt(position[0], position[1]);
  return absl::OkStatus();
}

absl::StatusOr<Sample> Loader::MakeSample(const Epoch& epoch,
                                          int64_t index) const {
  ASSIGN_OR_RETURN(Sample sample, dataset_->Get(index));
  SampleRandom random(options_.seed, static_cast<uint64_t>(epoch.number),
                      static_cast<uint64_t>(index));
  const absl::Status status = CatchErrors([&] {
    if (options_.transform)
      sample.image = options_.transform(sample.image, random);
    sample.image = ToFloat()(sample.image, random);
  });
  if (!status.ok()) return Annotate(status, dataset_->Describe(index));
  return sample;
}

Loader::Result Loader::MakeBatch(const Epoch& epoch, int64_t batch) const {
  const int64_t begin = batch * options_.batch;
  const int64_t count = std::min(options_.batch, dataset_->size() - begin);
  Batch result;
  Shape first;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = epoch.order[static_cast<size_t>(begin + i)];
    ASSIGN_OR_RETURN(const Sample sample, MakeSample(epoch, index));
    if (i == 0) {
      first = sample.image.shape();
      result.images = Tensor::Empty({count, first[0], first[1], first[2]},
                                    {.format = MemoryFormat::kChannelsLast});
      result.labels = Tensor::Empty({count}, {.dtype = DType::kI64});
    } else if (sample.image.shape() != first) {
      return absl::InvalidArgumentError(absl::StrCat(
          dataset_->Describe(index), ": an image ",
          sample.image.shape().ToString(), " does not go into a batch of ",
          first.ToString(), "; resize or crop images to one size"));
    }
    result.images.Select(0, i).CopyFrom(sample.image);
    result.labels.data<int64_t>()[i] = sample.label;
  }
  return result;
}

bool Loader::HasWorkLocked() const {
  return begun_ < batches_ && begun_ - taken_ < options_.prefetch;
}

void Loader::Work() {
  SetComputeThreads(1);  // the cores belong to training
  for (;;) {
    std::shared_ptr<const Epoch> epoch;
    int64_t batch = 0;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !HasWorkLocked()) work_.Wait(mutex_);
      if (stopping_) return;
      epoch = epoch_;
      batch = begun_++;
    }
    Result result = CatchErrors([&] { return MakeBatch(*epoch, batch); });
    MutexLock lock(mutex_);
    if (epoch != epoch_) continue;  // StartEpoch came between
    ready_.emplace(batch, std::move(result));
    made_.NotifyOne();
  }
}

absl::StatusOr<std::optional<Batch>> Loader::Await(int64_t batch) {
  const auto deadline = std::chrono::steady_clock::now() + options_.deadline;
  MutexLock lock(mutex_);
  auto found = ready_.find(batch);
  while (found == ready_.end()) {
    const bool in_time = made_.WaitUntil(mutex_, deadline);
    found = ready_.find(batch);
    if (!in_time && found == ready_.end())
      return absl::DeadlineExceededError(
          absl::StrCat("Loader: no batch ", batch, " within ",
                       options_.deadline.count(), " ms"));
  }
  Result result = std::move(found->second);
  ready_.erase(found);
  ++taken_;
  work_.NotifyOne();
  if (!result.ok()) return result.status();
  return std::optional<Batch>(*std::move(result));
}

absl::StatusOr<std::optional<Batch>> Loader::Next() {
  if (next_ == batches_) return std::optional<Batch>();
  if (!threads_.empty()) {
    auto result = Await(next_);
    if (!absl::IsDeadlineExceeded(result.status())) ++next_;
    return result;
  }
  std::shared_ptr<const Epoch> epoch;
  {
    MutexLock lock(mutex_);
    epoch = epoch_;
  }
  const int64_t batch = next_++;
  Result result = CatchErrors([&] { return MakeBatch(*epoch, batch); });
  if (!result.ok()) return result.status();
  return std::optional<Batch>(*std::move(result));
}

}  // namespace baton::data
