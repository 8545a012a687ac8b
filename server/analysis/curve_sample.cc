#include "server/analysis/curve_sample.h"

#include <algorithm>
#include <cmath>

namespace hpo::server {
namespace {

void Keep(const CurvePoints& points, size_t i, CurvePoints& kept) {
  kept.steps.push_back(points.steps[i]);
  kept.values.push_back(points.values[i]);
}

// Of [begin, end) those with the lowest and the highest value, in order; where none is finite, the
// first.
void KeepExtremes(const CurvePoints& points, size_t begin, size_t end, CurvePoints& kept) {
  size_t lowest = end;
  size_t highest = end;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points.values[i])) continue;
    if (lowest == end || points.values[i] < points.values[lowest]) lowest = i;
    if (highest == end || points.values[i] > points.values[highest]) highest = i;
  }
  if (lowest == end) lowest = highest = begin;
  Keep(points, std::min(lowest, highest), kept);
  if (lowest != highest) Keep(points, std::max(lowest, highest), kept);
}

}  // namespace

CurvePoints PointsOf(const std::vector<Measurement>& measurements, const std::string& metric) {
  CurvePoints points;
  for (const Measurement& measurement : measurements) {
    const auto value = measurement.metrics.find(metric);
    if (value == measurement.metrics.end()) continue;
    points.steps.push_back(measurement.step);
    points.values.push_back(value->second);
  }
  return points;
}

CurvePoints Thinned(const CurvePoints& points, size_t most) {
  const size_t size = points.steps.size();
  if (size <= most) return points;
  CurvePoints kept;
  Keep(points, 0, kept);
  const size_t inner = size - 2;
  const size_t stretches = std::max<size_t>(1, (most - 2) / 2);
  for (size_t i = 0; i < stretches; ++i) {
    const size_t begin = 1 + i * inner / stretches;
    const size_t end = 1 + (i + 1) * inner / stretches;
    if (begin < end) KeepExtremes(points, begin, end, kept);
  }
  Keep(points, size - 1, kept);
  return kept;
}

}  // namespace hpo::server
