// Compiled for processors that have it: see CMakeLists.txt.
#include "sampler/gp/surrogate/prediction_loops.h"

namespace hpo::sampler {

const PredictionLoops* Avx512PredictionLoops();

const PredictionLoops* Avx512PredictionLoops() {
  return &PredictionLoopsOn<SimdPath::kAvx512>::kLoops;
}

}  // namespace hpo::sampler
