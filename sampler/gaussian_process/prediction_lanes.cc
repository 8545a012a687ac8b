#include "sampler/gaussian_process/prediction_lanes.h"

#include "sampler/gaussian_process/prediction_loops.h"

namespace hpo {

// In files that are compiled for these processors.
const PredictionLoops* Avx2PredictionLoops();
const PredictionLoops* Avx512PredictionLoops();

const PredictionLoops* PredictionLoopsOf(SimdPath path) {
  switch (path) {
    case SimdPath::kBaseline:
      return &PredictionLoopsOn<SimdPath::kBaseline>::kLoops;
    case SimdPath::kAvx2:
      return __builtin_cpu_supports("avx2") ? Avx2PredictionLoops() : nullptr;
    case SimdPath::kAvx512:
      return __builtin_cpu_supports("avx512f") ? Avx512PredictionLoops() : nullptr;
  }
  return nullptr;
}

void PredictTogether(const ProcessView& process, const double* positions, double* scratch,
                     PredictedLanes& result) {
  static const PredictionLoops& best = BestOf(PredictionLoopsOf);
  best.predict(process, positions, scratch, result);
}

}  // namespace hpo
