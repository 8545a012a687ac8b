// Compiled for processors that have it: -mavx2 in CMakeLists.txt.
#include "sampler/tpe/kernel_loops.h"

namespace hpo::sampler {

const KernelLoops* Avx2Loops();

const KernelLoops* Avx2Loops() { return &KernelLoopsOn<SimdPath::kAvx2>::kLoops; }

}  // namespace hpo::sampler
