// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/data/batch_loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/parallel.h"
#include "core/shown_time.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton::data {
namespace {

constexpr char kPosition[] = "position";
constexpr char kOrder[] = "order";

// Returns an uninitialized tensor like `x` in other memory.
Tensor EmptyAt(const Tensor& x, Device device, bool pinned) {
  return Tensor::Empty(x.shape(), {.dtype = x.dtype(),
                                   .device = device,
                                   .format = x.SuggestFormat(),
                                   .pinned = pinned});
}

bool IsPageable(const Tensor& x) {
  return x.device().is_cpu() && x.storage()->use() == nullptr;
}

// Returns the numbers stored under `key`; an empty list if there are none.
std::vector<int64_t> NumbersOf(const std::map<std::string, Tensor>& state,
                               const char* key) {
  const auto found = state.find(key);
  return found == state.end() ? std::vector<int64_t>()
                              : found->second.ToVector<int64_t>();
}

}  // namespace

MakeBatch FromSamples(
    std::function<absl::StatusOr<Tensors>(int64_t sample)> get,
    Collate collate) {
  return [get = std::move(get), collate = std::move(collate)](
             int64_t,
             const std::vector<int64_t>& samples) -> absl::StatusOr<Tensors> {
    std::vector<Tensors> all;
    for (const int64_t sample : samples) {
      ASSIGN_OR_RETURN(Tensors tensors, get(sample));
      all.push_back(std::move(tensors));
    }
    return collate(all);
  };
}

absl::StatusOr<std::unique_ptr<BatchLoader>> BatchLoader::Make(
    std::shared_ptr<const BatchSampler> sampler, MakeBatch make,
    const BatchLoaderOptions& options) {
  if (sampler == nullptr || make == nullptr)
    return absl::InvalidArgumentError("BatchLoader: no sampler or no maker");
  if (options.workers < 0 || options.prefetch < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        "BatchLoader: expected workers >= 0 and prefetch >= 1, got ",
        options.workers, " and ", options.prefetch));
  return CatchErrors([&]() -> absl::StatusOr<std::unique_ptr<BatchLoader>> {
    return std::unique_ptr<BatchLoader>(
        new BatchLoader(std::move(sampler), std::move(make), options));
  });
}

BatchLoader::BatchLoader(std::shared_ptr<const BatchSampler> sampler,
                         MakeBatch make, const BatchLoaderOptions& options)
    : sampler_(std::move(sampler)),
      make_(std::move(make)),
      options_(options),
      epoch_(MakeEpoch(0)) {
  for (int i = 0; i < options_.workers; ++i)
    threads_.emplace_back([this] { Work(); });
}

BatchLoader::~BatchLoader() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<const BatchLoader::Epoch> BatchLoader::MakeEpoch(
    int64_t number) const {
  return std::make_shared<Epoch>(Epoch{number, sampler_->Batches(number)});
}

void BatchLoader::StartAt(int64_t epoch, int64_t batch) {
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

std::map<std::string, Tensor> BatchLoader::ExportState() const {
  return {{kPosition, Tensor::From<int64_t>({number_, next_})},
          {kOrder, Tensor::From(sampler_->Identity())}};
}

absl::Status BatchLoader::ImportState(
    const std::map<std::string, Tensor>& state) {
  std::vector<int64_t> position, order;
  RETURN_IF_ERROR(CatchErrors([&] {
    position = NumbersOf(state, kPosition);
    order = NumbersOf(state, kOrder);
  }));
  const std::vector<int64_t> own = sampler_->Identity();
  if (order != own) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loader: the state is of samples in the order ",
        absl::StrJoin(order, ", "), " (data/sampler.h: identity); those of ",
        "this loader are in the order ", absl::StrJoin(own, ", ")));
  }
  if (position.size() != 2 || position[0] < 0 || position[1] < 0 ||
      position[1] > batches())
    return absl::InvalidArgumentError("loader: the state has no position");
  return CatchErrors([&] { StartAt(position[0], position[1]); });
}

Tensors BatchLoader::Pinned(Tensors tensors) const {
  if (!options_.pinned && options_.device.is_cpu()) return tensors;
  for (Tensor& tensor : tensors) {
    if (!tensor.defined() || !IsPageable(tensor)) continue;
    const Tensor pinned = EmptyAt(tensor, Device::Cpu(), /*pinned=*/true);
    pinned.CopyFrom(tensor);
    tensor = pinned;
  }
  return tensors;
}

// Returns before the copies have ended; later work on the GPU waits for them.
Tensors BatchLoader::Placed(const Tensors& tensors) const {
  const StreamScope scope(Stream::ForCopies(Device::Cpu(), options_.device));
  Tensors placed;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.device() == options_.device) {
      placed.push_back(tensor);
      continue;
    }
    placed.push_back(EmptyAt(tensor, options_.device, /*pinned=*/false));
    placed.back().CopyFromAsync(tensor);
  }
  return placed;
}

BatchLoader::Result BatchLoader::MadeFor(const Epoch& epoch,
                                         int64_t batch) const {
  return CatchErrors([&]() -> Result {
    ASSIGN_OR_RETURN(
        Tensors tensors,
        make_(epoch.number, epoch.batches[static_cast<size_t>(batch)]));
    return Pinned(std::move(tensors));
  });
}

// Starts the copy to the GPU of the batch that Next returns next, if that batch
// is made and no other thread has started it. Called by the thread that has
// made a batch or taken one.
void BatchLoader::PlaceAhead() {
  if (options_.device.is_cpu()) return;
  std::shared_ptr<const Epoch> epoch;
  int64_t batch = 0;
  Tensors host;
  {
    MutexLock lock(mutex_);
    const auto found = ready_.find(taken_);
    if (found == ready_.end() || found->second.place != Made::kHost) return;
    found->second.place = Made::kLeaving;
    epoch = epoch_;
    batch = taken_;
    host = *found->second.result;
  }
  Result placed = CatchErrors([&]() -> Result { return Placed(host); });
  MutexLock lock(mutex_);
  const auto found = ready_.find(batch);
  if (epoch != epoch_ || found == ready_.end()) return;
  found->second = {std::move(placed), Made::kThere};
  made_.NotifyOne();
}

bool BatchLoader::HasWorkLocked() const {
  return begun_ < static_cast<int64_t>(epoch_->batches.size()) &&
         begun_ - taken_ < options_.prefetch;
}

void BatchLoader::Work() {
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
    Result result = MadeFor(*epoch, batch);
    {
      MutexLock lock(mutex_);
      if (epoch != epoch_) continue;  // StartEpoch was called meanwhile
      const bool moves = result.ok() && options_.device.is_cuda();
      ready_.emplace(
          batch, Made{std::move(result), moves ? Made::kHost : Made::kThere});
      made_.NotifyOne();
    }
    PlaceAhead();
  }
}

BatchLoader::Result BatchLoader::Await(int64_t batch) {
  const auto deadline = std::chrono::steady_clock::now() + options_.deadline;
  MutexLock lock(mutex_);
  const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = ready_.find(batch);
    return found != ready_.end() && found->second.place == Made::kThere;
  };
  while (!there()) {
    if (!made_.WaitUntil(mutex_, deadline) && !there())
      return absl::DeadlineExceededError(
          absl::StrCat("loader: no batch ", batch, " within ",
                       ShownTime(options_.deadline)));
  }
  const auto found = ready_.find(batch);
  Result result = std::move(found->second.result);
  ready_.erase(found);
  ++taken_;
  work_.NotifyOne();
  return result;
}

absl::StatusOr<std::optional<Tensors>> BatchLoader::Next() {
  std::shared_ptr<const Epoch> epoch;
  {
    MutexLock lock(mutex_);
    epoch = epoch_;
  }
  if (next_ == static_cast<int64_t>(epoch->batches.size()))
    return std::optional<Tensors>();
  Result result;
  if (threads_.empty()) {
    result = MadeFor(*epoch, next_);
    if (result.ok() && options_.device.is_cuda())
      result = CatchErrors([&]() -> Result { return Placed(*result); });
  } else {
    result = Await(next_);
    if (absl::IsDeadlineExceeded(result.status())) return result.status();
    PlaceAhead();
  }
  ++next_;
  if (!result.ok()) return result.status();
  return std::optional<Tensors>(*std::move(result));
}

}  // namespace baton::data
