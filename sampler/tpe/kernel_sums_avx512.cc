// Compiled for processors that have it: -mavx512f in CMakeLists.txt.
#include "sampler/tpe/kernel_loops.h"

namespace hpo::sampler {

const KernelLoops* Avx512Loops();

const KernelLoops* Avx512Loops() { return &KernelLoopsOn<SimdPath::kAvx512>::kLoops; }

}  // namespace hpo::sampler
