// Which of many configurations is farthest from those that were taken, so that the taken ones fill
// the space. One owner thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "memory/frontier/frontier_space.h"

namespace hpo::memory {

// The distance is Euclidean, 1 from one end of a parameter to the other. Choices differ by 1, and
// so does a parameter that exists in one of two configurations alone.
class SpaceFilling {
 public:
  explicit SpaceFilling(const FrontierSpace& space);

  // Index of the configuration, of those that were not taken and for which `counts`, that is
  // farthest from all that were taken; the first of equals. nullopt: there is none.
  template <typename Counts>
  std::optional<size_t> Farthest(Counts counts) const {
    std::optional<size_t> best;
    for (size_t index = 0; index < points_.size(); ++index) {
      if (points_[index].is_taken || !counts(index)) continue;
      if (!best || points_[index].nearest > points_[*best].nearest) best = index;
    }
    return best;
  }

  void Take(size_t index);

 private:
  struct Point {
    std::vector<double> position;  // one number for each axis
    double nearest;                // distance to the nearest that was taken
    bool is_taken = false;
  };

  double Distance(const Point& a, const Point& b) const;

  std::vector<bool> is_number_;  // by axis
  std::vector<Point> points_;
};

}  // namespace hpo::memory
