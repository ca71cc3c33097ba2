// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/optimizer.h"

#include <bit>
#include <utility>
#include <variant>

#include "core/cpu/simd.h"
#include "core/dtype_visit.h"

namespace baton::cpu {
namespace {

template <typename T>
T* At(void* array, int64_t index) {
  return array == nullptr ? nullptr : static_cast<T*>(array) + index;
}

template <typename T>
const T* At(const void* array, int64_t index) {
  return static_cast<const T*>(array) + index;
}

struct Part {
  int64_t begin, count, grad_begin;
};

// Steps the same elements of each parameter, whose arrays have one order, with
// the state slots in `kUsed`.
template <typename Rule, unsigned kUsed, typename T, typename G>
struct StepKernel {
  template <size_t... kSlot>
  BATON_SIMD_INLINE void operator()(
      const StepArrays* parameters, size_t number, Part part,
      const typename Rule::template Element<T>* rule,
      const ops::GradientClip<T>* clip, std::index_sequence<kSlot...>) const {
    const auto step = *rule;
    const auto clipped = *clip;
    for (size_t i = 0; i < number; ++i) {
      const StepArrays& arrays = parameters[i];
      StepOne(step, clipped, part.count, At<T>(arrays.value, part.begin),
              At<G>(arrays.grad, part.grad_begin),
              At<T>(arrays.state[kSlot], part.begin)...);
    }
  }

  template <typename... S>
  BATON_SIMD_INLINE static void StepOne(
      const typename Rule::template Element<T>& step,
      const ops::GradientClip<T>& clipped, int64_t count, T* __restrict value,
      const G* __restrict grad, S* __restrict... state) {
    for (int64_t i = 0; i < count; ++i) {
      unsigned slot = 0;
      T states[] = {(kUsed >> slot++ & 1U) != 0 ? state[i] : T(0)...};
      T x = value[i];
      step(x, clipped(Convert<T>(grad[i])), states, kUsed);
      value[i] = x;
      slot = 0;
      ((void)((kUsed >> slot & 1U) != 0 ? (state[i] = states[slot]) : T(0),
              ++slot),
       ...);
    }
  }
};

template <typename Rule, unsigned kUsed, typename T, typename G>
void RunStep(const Rule& rule, std::span<const StepArrays> parameters,
             const StepArguments& arguments, Part part) {
  const typename Rule::template Element<T> element(
      rule, rule.FactorsOf(arguments.rate, arguments.step));
  const ops::GradientClip<T> clip{static_cast<T>(arguments.limit),
                                  static_cast<T>(arguments.scale)};
  RunSimd(StepKernel<Rule, kUsed, T, G>(), parameters.data(), parameters.size(),
          part, &element, &clip, std::make_index_sequence<Rule::kSlots>());
}

// Adds to kUsed, at compile time, the slots that are used at run time.
template <typename T, typename G, unsigned kUsed, typename Rule>
void RunUsed(unsigned used, const Rule& rule,
             std::span<const StepArrays> parameters,
             const StepArguments& arguments, Part part) {
  constexpr bool kPossible = (kUsed & Rule::kRequired) == Rule::kRequired;
  if constexpr (kPossible) {
    if (used == kUsed) {
      return RunStep<Rule, kUsed, T, G>(rule, parameters, arguments, part);
    }
  }
  if constexpr (kUsed + 1 < (1U << Rule::kSlots)) {
    RunUsed<T, G, kUsed + 1>(used, rule, parameters, arguments, part);
  }
}

unsigned UsedSlots(const StepArrays& arrays) {
  unsigned used = 0;
  for (size_t i = 0; i < arrays.state.size(); ++i)
    used |= arrays.state[i] != nullptr ? 1U << i : 0U;
  return used;
}

// Calls fn with the types of the value and of its gradient.
template <typename Fn>
void VisitTypes(DType value, DType grad, Fn fn) {
  if (value == DType::kF64) {
    fn(std::type_identity<double>{}, std::type_identity<double>{});
  } else if (grad == DType::kBF16) {
    fn(std::type_identity<float>{}, std::type_identity<BFloat16>{});
  } else if (grad == DType::kF16) {
    fn(std::type_identity<float>{}, std::type_identity<Half>{});
  } else {
    fn(std::type_identity<float>{}, std::type_identity<float>{});
  }
}

struct LowerRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(L* __restrict to,
                                    const float* __restrict from,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = Convert<L>(from[i]);
  }
};

struct TakeBackRow {
  template <typename L>
  BATON_SIMD_INLINE void operator()(float* __restrict value,
                                    const L* __restrict lowered,
                                    int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const bool same = std::bit_cast<uint16_t>(Convert<L>(value[i])) ==
                        std::bit_cast<uint16_t>(lowered[i]);
      value[i] = same ? value[i] : Convert<float>(lowered[i]);
    }
  }
};

// Overwrites f32 values with elements of `lowered` (bf16 or f16) that differ
// from the rounded values.
void TakeBack(const StepArrays& arrays, int64_t begin, int64_t end) {
  float* to = At<float>(arrays.value, begin);
  if (arrays.lowered_dtype == DType::kBF16) {
    RunSimd(TakeBackRow(), to, At<BFloat16>(arrays.lowered, begin),
            end - begin);
  } else {
    RunSimd(TakeBackRow(), to, At<Half>(arrays.lowered, begin), end - begin);
  }
}

void Lower(const StepArrays& arrays, int64_t begin, int64_t end) {
  const float* from = At<float>(arrays.value, begin);
  if (arrays.lowered_dtype == DType::kBF16) {
    RunSimd(LowerRow(), At<BFloat16>(arrays.lowered, begin), from, end - begin);
  } else {
    RunSimd(LowerRow(), At<Half>(arrays.lowered, begin), from, end - begin);
  }
}

}  // namespace

void StepRange(const ops::StepRule& rule,
               std::span<const StepArrays> parameters,
               const StepArguments& arguments, int64_t begin, int64_t end,
               int64_t grad_begin) {
  if (parameters.empty()) return;
  const StepArrays& like = parameters.front();
  if (like.lowered != nullptr) {
    for (const StepArrays& arrays : parameters) TakeBack(arrays, begin, end);
  }
  const unsigned used = UsedSlots(like);
  VisitTypes(like.dtype, like.grad_dtype, [&](auto t, auto g) {
    using T = typename decltype(t)::type;
    using G = typename decltype(g)::type;
    const auto run = [&](const auto& of_kind) {
      RunUsed<T, G, 0>(used, of_kind, parameters, arguments,
                       {begin, end - begin, grad_begin});
    };
    std::visit(run, rule);
  });
  if (like.lowered != nullptr) {
    for (const StepArrays& arrays : parameters) Lower(arrays, begin, end);
  }
}

}  // namespace baton::cpu
