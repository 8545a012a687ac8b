// What a Gaussian process predicts at eight points side by side, vectorised by hand (lanes.h): the
// inner loop of a search that looks at hundreds of candidates.
// Pure; safe from any thread.
#pragma once

#include <cstddef>

#include "sampler/numeric/lanes.h"

namespace hpo::sampler {

constexpr size_t kPointsTogether = kNumLanes;

// A process after its observations, as the loops read it.
struct ProcessView {
  size_t num_axes = 0;
  size_t num_points = 0;
  size_t num_observed = 0;
  const double* const* columns;  // by axis: where the points lie
  const double* weights;         // by axis, of the kernel (matern_kernel.h)
  double scale = 1.0;
  double additive = 0.0;
  const double* factor;  // lower Cholesky factor, row by row
  const double* alpha;   // of the observed points
};

// Of eight points.
struct PredictedLanes {
  double mean[kPointsTogether];
  double explained[kPointsTogether];  // of the prior's variance, scale
};

// `positions`: by axis, eight each. `scratch`: room for 8 * num_points.
void PredictTogether(const ProcessView& process, const double* positions, double* scratch,
                     PredictedLanes& result);

}  // namespace hpo::sampler
