// Curves of intermediate values as far as a chart can show them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/study/trial.h"

namespace hpo::server {

// Values by ascending step; one that is not finite is what a diverged training has measured.
struct CurvePoints {
  std::vector<int64_t> steps;
  std::vector<double> values;
};

// Those of `metric`; measurements without it are left out.
CurvePoints PointsOf(const std::vector<Measurement>& measurements, const std::string& metric);

// At most `most` of them (at least 4): the first, the last, and of equal stretches between them the
// lowest and the highest.
CurvePoints Thinned(const CurvePoints& points, size_t most);

}  // namespace hpo::server
