// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// One binary serves every machine: a kernel is a function object whose
// operator() is inlined into one wrapper for each instruction set, where the
// compiler vectorises its loops. RunSimd calls the wrapper with the widest
// instructions that the machine has. A kernel chooses its number of lanes
// itself, so that results do not depend on the machine.
namespace baton::cpu {

#define BATON_SIMD_INLINE __attribute__((always_inline)) inline

#if defined(__x86_64__)

enum class SimdLevel { kBaseline, kAvx2, kAvx512 };
SimdLevel MachineSimdLevel();
inline const SimdLevel kSimdLevel = MachineSimdLevel();

template <typename Kernel, typename... Args>
__attribute__((
    target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,bmi,bmi2,"
           "prefer-vector-width=512"))) void
RunAvx512(Kernel kernel, Args... args) {
  kernel(args...);
}

template <typename Kernel, typename... Args>
__attribute__((target("avx2,fma,f16c,bmi,bmi2"))) void RunAvx2(Kernel kernel,
                                                               Args... args) {
  kernel(args...);
}

template <typename Kernel, typename... Args>
void RunSimd(Kernel kernel, Args... args) {
  switch (kSimdLevel) {
    case SimdLevel::kAvx512:
      return RunAvx512(kernel, args...);
    case SimdLevel::kAvx2:
      return RunAvx2(kernel, args...);
    case SimdLevel::kBaseline:
      return kernel(args...);
  }
}

#else

template <typename Kernel, typename... Args>
void RunSimd(Kernel kernel, Args... args) {
  kernel(args...);
}

#endif

}  // namespace baton::cpu
