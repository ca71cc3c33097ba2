// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "models/nn/data_parallel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/autocast.h"
#include "autograd/functions/indexing.h"
#include "autograd/functions/shape.h"
#include "autograd/functions/transfer.h"
#include "core/future.h"
#include "core/graph.h"
#include "core/random.h"
#include "core/status.h"

namespace baton::nn {
namespace {

constexpr char kDataParallel[] = "data_parallel";

// Copies the calling thread's modes (NoGrad, autocast) to other threads.
class Modes {
 public:
  // Sets the modes on this thread for its lifetime.
  class Scope {
   public:
    explicit Scope(const Modes& modes) {
      if (modes.no_grad_) no_grad_.emplace();
      if (modes.autocast_.has_value()) autocast_.emplace(*modes.autocast_);
    }

   private:
    std::optional<NoGrad> no_grad_;
    std::optional<AutocastScope> autocast_;
  };

 private:
  const bool no_grad_ = NoGrad::Active();
  const std::optional<DType> autocast_ = AutocastScope::Current();
};

}  // namespace

DataParallel::DataParallel(std::shared_ptr<Module> module, const Make& make,
                           DataParallelOptions options)
    : options_(std::move(options)),
      module_(RegisterModule("module", std::move(module))) {
  Require(!options_.devices.empty(), kDataParallel, "no devices");
  Require(module_.device() == options_.devices.front(), kDataParallel,
          "the module is on ", module_.device().ToString(), ", not on ",
          options_.devices.front().ToString());
  for (size_t i = 1; i < options_.devices.size(); ++i) {
    copies_.push_back(make());
    for (Generator* generator : copies_.back()->Generators()) {
      Generator::State state = generator->state();
      state.seed += i;
      generator->set_state(state);
    }
  }
  if (copies_.empty()) return;
  threads_ = std::make_unique<ThreadPool>(static_cast<int>(copies_.size()),
                                          "baton-replicas");
}

Module& DataParallel::ModuleOf(size_t part) const {
  return part == 0 ? module_ : *copies_[part - 1];
}

Variable DataParallel::Forward(const Variable& x) {
  const Values results = ForwardAll({x});
  Require(results.size() == 1, kDataParallel, "the module gives ",
          results.size(), " values: call ForwardAll");
  return results.front();
}

std::vector<Variable> DataParallel::ForwardAll(const Values& values) {
  return Gather(Apply(Scatter(values)));
}

std::vector<DataParallel::Values> DataParallel::Scatter(
    const Values& values) const {
  Require(!values.empty() && values.front().defined() &&
              values.front().tensor().rank() > 0,
          kDataParallel, "expected values of rows");
  const auto devices = static_cast<int64_t>(options_.devices.size());
  const int64_t rows = values.front().dim(0);
  const int64_t share = std::max<int64_t>((rows + devices - 1) / devices, 1);
  const int64_t parts = std::max<int64_t>((rows + share - 1) / share, 1);
  std::vector<Values> scattered(static_cast<size_t>(parts));
  for (const Variable& value : values) {
    Require(
        value.defined() && value.tensor().rank() > 0 && value.dim(0) == rows,
        kDataParallel, "expected values of ", rows, " rows each");
    for (int64_t i = 0; i < parts; ++i) {
      const auto part = static_cast<size_t>(i);
      const Variable own =
          autograd::Slice(value, 0, i * share, std::min((i + 1) * share, rows));
      scattered[part].push_back(autograd::To(own, options_.devices[part]));
    }
  }
  return scattered;
}

std::vector<DataParallel::Values> DataParallel::Apply(
    const std::vector<Values>& parts) {
  for (size_t i = 1; i < parts.size(); ++i)
    copies_[i - 1]->Follow(module_, options_.devices[i]);
  std::vector<Values> results(parts.size());
  const Modes modes;
  const auto apply = [&](size_t i) {
    const Modes::Scope scope(modes);
    const absl::Status status =
        CatchErrors([&] { results[i] = ModuleOf(i)(parts[i]); });
    return Annotate(status, absl::StrCat("part ", i, " on ",
                                         options_.devices[i].ToString()));
  };
  std::vector<Future<void>> others;
  for (size_t i = 1; i < parts.size(); ++i) {
    // A graph records only the work of the calling thread.
    if (Graph::IsRecording()) {
      others.push_back(ReadyFuture<void>(apply(i)));
      continue;
    }
    const Promise<void> promise;
    threads_->Post([&apply, i, promise] { promise.Set(apply(i)); });
    others.push_back(promise.future());
  }
  absl::Status first = apply(0);
  for (const Future<void>& other : others) {
    const absl::Status status = other.Await(kNoLimit);
    if (first.ok()) first = status;
  }
  if (!first.ok()) throw Error(first);
  return results;
}

DataParallel::Values DataParallel::Gather(
    const std::vector<Values>& results) const {
  const Device device =
      options_.output_device.value_or(options_.devices.front());
  Values gathered;
  for (size_t i = 0; i < results.front().size(); ++i) {
    Values parts;
    for (const Values& result : results) {
      Require(result.size() == results.front().size(), kDataParallel,
              "the parts give different numbers of values");
      const Variable there = autograd::To(result[i], device);
      parts.push_back(
          there.tensor().rank() > 0 ? there : autograd::Reshape(there, {1}));
    }
    gathered.push_back(parts.size() == 1 ? parts.front()
                                         : autograd::Cat(parts, 0));
  }
  return gathered;
}

}  // namespace baton::nn
