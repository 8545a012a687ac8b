// How loops that are compiled several times are compiled. A function of them takes the best that
// the processor has; tests compare them all.
#pragma once

#include <initializer_list>

namespace hpo::sampler {

enum class SimdPath { kBaseline, kAvx2, kAvx512 };

// Those of a path among loops that are compiled for each, the later ones in files for processors
// that have them; nullptr where this processor cannot run the path.
template <typename Loops>
const Loops* OfPath(SimdPath path, const Loops& baseline, const Loops* (*avx2)(),
                    const Loops* (*avx512)()) {
  switch (path) {
    case SimdPath::kBaseline:
      return &baseline;
    case SimdPath::kAvx2:
      return __builtin_cpu_supports("avx2") ? avx2() : nullptr;
    case SimdPath::kAvx512:
      return __builtin_cpu_supports("avx512f") ? avx512() : nullptr;
  }
  return nullptr;
}

// The loops of the best path that this processor can run; `loops_of` gives a path's, nullptr where
// it cannot.
template <typename Loops>
const Loops& BestOf(const Loops* (*loops_of)(SimdPath)) {
  for (const SimdPath path : {SimdPath::kAvx512, SimdPath::kAvx2}) {
    if (const Loops* loops = loops_of(path); loops != nullptr) return *loops;
  }
  return *loops_of(SimdPath::kBaseline);
}

}  // namespace hpo::sampler
