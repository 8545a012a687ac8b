#include "sampler/gp/surrogate/prediction_lanes.h"

#include "sampler/gp/surrogate/prediction_loops.h"

namespace hpo::sampler {

// In files that are compiled for these processors.
const PredictionLoops* Avx2PredictionLoops();
const PredictionLoops* Avx512PredictionLoops();

const PredictionLoops* PredictionLoopsOf(SimdPath path) {
  return OfPath(path, PredictionLoopsOn<SimdPath::kBaseline>::kLoops, Avx2PredictionLoops,
                Avx512PredictionLoops);
}

void PredictTogether(const ProcessView& process, const double* positions, double* scratch,
                     PredictedLanes& result) {
  static const PredictionLoops& best = BestOf(PredictionLoopsOf);
  best.predict(process, positions, scratch, result);
}

}  // namespace hpo::sampler
