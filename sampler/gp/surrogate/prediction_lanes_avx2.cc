// Compiled for processors that have it: see CMakeLists.txt.
#include "sampler/gp/surrogate/prediction_loops.h"

namespace hpo::sampler {

const PredictionLoops* Avx2PredictionLoops();

const PredictionLoops* Avx2PredictionLoops() { return &PredictionLoopsOn<SimdPath::kAvx2>::kLoops; }

}  // namespace hpo::sampler
