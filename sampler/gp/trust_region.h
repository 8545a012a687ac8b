// Where a study looks closely, in turns with looking everywhere: a box around the best trial that
// grows while trials in it gain and shrinks while they do not. Where it has become tiny, the place
// is done with, and the box starts again around the best trial elsewhere.
//
// Sources: the counters of TuRBO (Eriksson et al. 2019, arXiv:1910.01739); local steps in turns
// with global ones: TREGO (Diouane et al. 2023, arXiv:2101.06808). A gain counts from a thousandth
// of what the first trials were behind. A function of the observations alone, folded again at each
// ask, so that it knows nothing of who proposed a trial: what lies in the box is a step in it.
// Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sampler/gp/surrogate/matern_kernel.h"

namespace hpo::sampler {

struct TrustRegion {
  size_t center = 0;  // which observation
  double side = 0.0;  // of the box, as a part of each axis
  // The observations that tell how it looks there, ascending: those in a box twice as wide, and the
  // nearest of the others where these are few.
  std::vector<size_t> nearest;
  std::vector<bool> in_box;  // of `nearest`
};

// `losses`: of each point, in the order of trials; infinite for one that cannot be the best. At
// least one. `num_running`: trials without a loss yet; with more of them the box shrinks later, as
// they do not know of each other.
TrustRegion FindTrustRegion(const PointTable& points, std::span<const double> losses,
                            size_t num_running);

}  // namespace hpo::sampler
