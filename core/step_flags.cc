// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/step_flags.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <ctime>

#include "core/cuda/step_flags.h"
#include "core/status.h"

namespace baton {
namespace {

using std::chrono::steady_clock;

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free &&
                  std::endian::native == std::endian::little,
              "a thread sleeps on the lower half of a flag");

enum Word { kStep = 0, kGivenUp = 1, kDecided = 2, kWords = 3 };

// How often a sleeping thread checks whether its step is given up.
constexpr std::chrono::nanoseconds kLook{1'000'000};

std::shared_ptr<Storage> WordsFor(Device device) {
  constexpr size_t kBytes = kWords * sizeof(uint64_t);
  return device.is_cuda() ? Storage::AllocatePinned(kBytes)
                          : Storage::Allocate(kBytes, Device::Cpu());
}

// Without FUTEX_PRIVATE_FLAG, because the two sides are different processes.
void Wake(uint64_t* flag) {
  syscall(SYS_futex, flag, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SleepWhile(const uint64_t* flag, uint64_t seen,
                std::chrono::nanoseconds most) {
  const timespec time = {.tv_sec = 0, .tv_nsec = most.count()};
  syscall(SYS_futex, flag, FUTEX_WAIT, static_cast<uint32_t>(seen), &time,
          nullptr, 0);
}

}  // namespace

StepNumber::StepNumber(Device device)
    : device_(device),
      memory_(WordsFor(device)),
      words_(static_cast<uint64_t*>(memory_->data())) {
  words_[kStep] = words_[kGivenUp] = words_[kDecided] = 0;
  if (device.is_cuda()) cuda::LoadFlagKernels(device.index());
}

void StepNumber::Begin(uint64_t step) { word(kStep).store(step); }

void StepNumber::Begin(uint64_t step, const Stream& stream) {
  cuda::BeginStep(words_, step, stream);
}

uint64_t StepNumber::step() const { return word(kStep).load(); }

void StepNumber::GiveUp(uint64_t step) {
  uint64_t seen = word(kGivenUp).load();
  while (seen < step && !word(kGivenUp).compare_exchange_weak(seen, step)) {
  }
}

uint64_t StepNumber::decided() const { return word(kDecided).load(); }

bool StepNumber::given_up(uint64_t step) const {
  return word(kGivenUp).load() >= step;
}

void RaiseFlag(uint64_t* flag, const StepNumber& step, const Stream& stream) {
  Require(stream.device() == step.device(), "raise_flag", "a step of ",
          step.device().ToString(), " on a stream of ",
          stream.device().ToString());
  if (stream.device().is_cuda()) {
    cuda::RaiseFlag(flag, step.words(), stream);
    return;
  }
  const uint64_t number = step.step();
  if (step.given_up(number)) return;
  std::atomic_ref<uint64_t>(*flag).store(number);
  Wake(flag);
}

void DecideStep(const uint64_t* flag, const StepNumber& step,
                const Tensor& skip) {
  cuda::DecideStep(flag, step.words(), skip);
}

void RaiseFlagUnless(const Tensor& skip, uint64_t* flag,
                     const StepNumber& step) {
  cuda::RaiseFlagUnless(skip, flag, step.words());
}

bool AwaitFlag(const uint64_t* flag, const StepNumber& step,
               const Stream& stream, steady_clock::time_point deadline) {
  Require(stream.device() == step.device(), "await_flag", "a step of ",
          step.device().ToString(), " on a stream of ",
          stream.device().ToString());
  if (stream.device().is_cuda()) {
    cuda::AwaitFlag(flag, step.words(), stream);
    return true;
  }
  const uint64_t wanted = step.step();
  const std::atomic_ref<uint64_t> value(*const_cast<uint64_t*>(flag));
  for (;;) {
    const uint64_t seen = value.load();
    if (seen >= wanted || step.given_up(wanted)) return true;
    const auto left = deadline - steady_clock::now();
    if (left <= left.zero()) return false;
    SleepWhile(flag, seen, std::min<std::chrono::nanoseconds>(left, kLook));
  }
}

}  // namespace baton
