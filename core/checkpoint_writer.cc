// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/checkpoint_writer.h"

#include <iterator>
#include <set>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/stream.h"

namespace baton {
namespace {

absl::Status WriteCheckpoint(const CheckpointDraft& draft,
                             const NamedTensors& state,
                             const Future<std::vector<Shard>>& others,
                             int keep) {
  ASSIGN_OR_RETURN(Shard own, WriteShard(draft, 0, state));
  std::vector<Shard> shards = {std::move(own)};
  if (others.valid()) {
    ASSIGN_OR_RETURN(std::vector<Shard> more, others.Await(kNoLimit));
    std::move(more.begin(), more.end(), std::back_inserter(shards));
  }
  return FinishCheckpoint(draft, shards, keep);
}

}  // namespace

const NamedTensors& HostCopy::Wait() const {
  for (const Event& event : ended) event.Synchronize();
  return tensors;
}

HostCopy HostCopies::Begin(const NamedTensors& tensors) {
  NamedTensors before = std::exchange(copies_, {});
  std::set<int> gpus;
  for (const auto& [name, tensor] : tensors) {
    const Device device = tensor.device();
    if (device.is_cuda()) gpus.insert(device.index());
    Tensor& copy = copies_[name] = before[name];
    if (!copy.defined() || copy.shape() != tensor.shape() ||
        copy.dtype() != tensor.dtype() ||
        copy.SuggestFormat() != tensor.SuggestFormat()) {
      copy = Tensor::Empty(tensor.shape(), {.dtype = tensor.dtype(),
                                            .format = tensor.SuggestFormat(),
                                            .pinned = device.is_cuda()});
    }
    const StreamScope scope(Stream::ForCopies(device, Device::Cpu()));
    copy.CopyFromAsync(tensor);
  }
  std::vector<Event> ended;
  for (const int gpu : gpus) {
    ended.emplace_back(Device::Cuda(gpu))
        .Record(Stream::ForCopies(Device::Cuda(gpu), Device::Cpu()));
  }
  return {copies_, std::move(ended)};
}

CheckpointWriter::CheckpointWriter(CheckpointOptions options)
    : options_(std::move(options)) {}

CheckpointWriter::~CheckpointWriter() {
  const absl::Status status = Wait();
  if (!status.ok()) LogError("checkpoint: ", status.ToString());
}

absl::Status CheckpointWriter::Save(int64_t step, const NamedTensors& state,
                                    const Others& others) {
  if (options_.folder.empty() || options_.keep < 0) {
    return absl::InvalidArgumentError(
        "a checkpoint takes a folder, and keep >= 0");
  }
  RETURN_IF_ERROR(Wait());
  ASSIGN_OR_RETURN(const CheckpointDraft draft,
                   BeginCheckpoint(options_.folder, step));
  Future<Shards> elsewhere;
  if (others) {
    ASSIGN_OR_RETURN(elsewhere, others(draft));
  }
  HostCopy copy;
  RETURN_IF_ERROR(CatchErrors([&] { copy = copies_.Begin(state); }));
  const Promise<void> done;
  under_way_ = done.future();
  pool_.Post(
      [draft, elsewhere, done, copy = std::move(copy), keep = options_.keep] {
        done.Set(CatchErrors([&] {
          return WriteCheckpoint(draft, copy.Wait(), elsewhere, keep);
        }));
      });
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Wait() {
  if (!under_way_.valid()) return absl::OkStatus();
  return std::exchange(under_way_, {}).Await(kNoLimit);
}

}  // namespace baton
