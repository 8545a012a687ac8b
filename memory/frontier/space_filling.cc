#include "memory/frontier/space_filling.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "common/space/params.h"

namespace hpo::memory {
namespace {

// Of a parameter that does not exist in a configuration.
constexpr double kAbsent = -1.0;

double PlaceOn(const FrontierAxis& axis, const ParamMap& params) {
  const auto found = params.find(axis.name);
  if (found == params.end()) return kAbsent;
  const auto at = std::find(axis.values.begin(), axis.values.end(), found->second);
  const auto index = static_cast<double>(std::distance(axis.values.begin(), at));
  return axis.is_number ? index / static_cast<double>(axis.values.size() - 1) : index;
}

}  // namespace

SpaceFilling::SpaceFilling(const FrontierSpace& space) {
  for (const FrontierAxis& axis : space.axes) is_number_.push_back(axis.is_number);
  for (const ParamMap& params : space.configurations) {
    Point point{.position = {}, .nearest = std::numeric_limits<double>::infinity()};
    for (const FrontierAxis& axis : space.axes) point.position.push_back(PlaceOn(axis, params));
    points_.push_back(point);
  }
}

double SpaceFilling::Distance(const Point& a, const Point& b) const {
  double sum = 0.0;
  for (size_t axis = 0; axis < is_number_.size(); ++axis) {
    const double first = a.position[axis];
    const double second = b.position[axis];
    if (first == second) continue;
    const bool is_number = is_number_[axis] && first != kAbsent && second != kAbsent;
    sum += is_number ? (first - second) * (first - second) : 1.0;
  }
  return std::sqrt(sum);
}

void SpaceFilling::Take(size_t index) {
  points_[index].is_taken = true;
  for (Point& point : points_) {
    point.nearest = std::min(point.nearest, Distance(points_[index], point));
  }
}

}  // namespace hpo::memory
