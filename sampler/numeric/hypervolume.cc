// Tested by tests/sampler/several_objectives_test.cc.
#include "sampler/numeric/hypervolume.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampler/numeric/non_domination.h"

namespace hpo::sampler {
namespace {

using Losses = std::vector<double>;

double BoxVolume(const double* corner, size_t num_sides) {
  double volume = 1.0;
  for (size_t i = 0; i < num_sides; ++i) volume *= corner[i];
  return volume;
}

double SharedVolume(const double* a, const double* b, size_t num_sides) {
  double volume = 1.0;
  for (size_t i = 0; i < num_sides; ++i) volume *= std::min(a[i], b[i]);
  return volume;
}

// Whether no side of `inner` is longer.
bool Covers(const double* outer, const double* inner, size_t num_sides) {
  return std::equal(inner, inner + num_sides, outer, std::less_equal());
}

// Unions of boxes that all have one corner in the origin, given by the opposite one.
class Boxes {
 public:
  using Corners = std::vector<const double*>;

  // By the first `num_sides` coordinates. Each box, in the order of their last side, adds a slab of
  // that thickness over what it has of its own in the other sides.
  double Union(Corners corners, size_t num_sides) {
    const size_t last = num_sides - 1;
    std::sort(corners.begin(), corners.end(), [num_sides](const double* a, const double* b) {
      for (size_t side = num_sides; side-- > 0;) {
        if (a[side] != b[side]) return a[side] > b[side];
      }
      return false;
    });
    if (num_sides == 2) return Area(corners);
    double volume = 0.0;
    for (size_t i = 0; i < corners.size(); ++i) {
      volume += corners[i][last] * Added(corners[i], {corners.data(), i}, last);
    }
    return volume;
  }

  // What the box adds to the union of `others`.
  double Added(const double* corner, std::span<const double* const> others, size_t num_sides) {
    std::vector<double> shared(others.size() * num_sides);
    num_compared_ += others.size();
    Corners largest;
    largest.reserve(others.size());
    for (size_t i = 0; i < others.size(); ++i) {
      double* box = &shared[i * num_sides];
      std::transform(corner, corner + num_sides, others[i], box,
                     [](double a, double b) { return std::min(a, b); });
      Keep(box, num_sides, largest);
    }
    return BoxVolume(corner, num_sides) - Union(std::move(largest), num_sides);
  }

  // Pairs of boxes so far.
  size_t num_compared() const { return num_compared_; }

 private:
  // Adds a box to those of which none covers another. (An area is as fast with all of them.)
  void Keep(const double* box, size_t num_sides, Corners& largest) {
    if (num_sides > 2) {
      num_compared_ += largest.size();
      for (const double* other : largest) {
        if (Covers(other, box, num_sides)) return;
      }
      std::erase_if(largest, [&](const double* other) { return Covers(box, other, num_sides); });
    }
    largest.push_back(box);
  }

  // The highest comes first.
  static double Area(const Corners& corners) {
    double area = 0.0;
    double width = 0.0;
    for (const double* corner : corners) {
      if (corner[0] <= width) continue;
      area += (corner[0] - width) * corner[1];
      width = corner[0];
    }
    return area;
  }

  size_t num_compared_ = 0;
};

// One loss as a length of the box that it dominates: 1 for the least, 0 for infinity.
class Lengths {
 public:
  void Count(double loss) {
    if (!std::isfinite(loss)) return;
    best_ = std::min(best_, loss);
    worst_ = std::max(worst_, loss);
  }

  double Of(double loss) const {
    if (loss == std::numeric_limits<double>::infinity()) return 0.0;
    const double most = std::numeric_limits<double>::max();
    const double margin = std::max(1.1 * worst_, 0.9 * worst_);
    const double end = margin == 0.0 ? 1e-12 : std::min(margin, most);
    if (!(loss > best_) || !(end > best_)) return 1.0;
    const double unit = std::isfinite(end - best_) ? 1.0 : 0.5;
    return (unit * end - unit * loss) / (unit * end - unit * best_);
  }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  double worst_ = -std::numeric_limits<double>::infinity();
};

std::vector<Losses> CornersOf(const std::vector<const Losses*>& points) {
  std::vector<Losses> corners(points.size());
  for (size_t side = 0; side < points.front()->size(); ++side) {
    Lengths lengths;
    for (const Losses* point : points) lengths.Count((*point)[side]);
    for (size_t i = 0; i < points.size(); ++i) {
      corners[i].push_back(lengths.Of((*points[i])[side]));
    }
  }
  return corners;
}

struct Contender {
  double gain = 0.0;  // what it adds to those chosen, or more
  size_t corner = 0;
  bool exact = false;

  bool operator<(const Contender& other) const {
    return gain != other.gain ? gain < other.gain : corner > other.corner;
  }
};

// Lazily: as what a box adds only falls with those before it, an old value bounds it from above.
std::vector<size_t> ChooseGreedily(const std::vector<Losses>& corners, size_t count) {
  constexpr size_t kMostCompared = size_t{1} << 20;
  const size_t num_sides = corners.front().size();
  std::vector<Contender> candidates;
  for (size_t i = 0; i < corners.size(); ++i) {
    candidates.push_back({.gain = BoxVolume(corners[i].data(), num_sides), .corner = i});
  }
  std::vector<size_t> chosen;
  Boxes::Corners taken;
  Boxes boxes;
  while (chosen.size() < count) {
    std::make_heap(candidates.begin(), candidates.end());
    while (!candidates.front().exact && boxes.num_compared() < kMostCompared) {
      std::pop_heap(candidates.begin(), candidates.end());
      Contender& top = candidates.back();
      top.gain = std::min(top.gain, boxes.Added(corners[top.corner].data(), taken, num_sides));
      top.exact = true;
      std::push_heap(candidates.begin(), candidates.end());
    }
    std::pop_heap(candidates.begin(), candidates.end());
    const Losses& best = corners[candidates.back().corner];
    chosen.push_back(candidates.back().corner);
    candidates.pop_back();
    taken.push_back(best.data());
    for (Contender& candidate : candidates) {
      const double* corner = corners[candidate.corner].data();
      const double own =
          BoxVolume(corner, num_sides) - SharedVolume(corner, best.data(), num_sides);
      candidate.gain = std::min(candidate.gain, own);
      candidate.exact = false;
    }
  }
  return chosen;
}

}  // namespace

double UnionVolume(std::span<const Losses> corners) {
  if (corners.empty()) return 0.0;
  Boxes::Corners pointers;
  for (const Losses& corner : corners) pointers.push_back(corner.data());
  return Boxes().Union(std::move(pointers), corners.front().size());
}

std::vector<size_t> ChooseByHypervolume(std::span<const Losses> points, size_t count) {
  std::vector<size_t> distinct;
  std::vector<size_t> repeated;
  for (const size_t i : LexicographicOrder(points)) {
    const bool new_point = distinct.empty() || points[distinct.back()] != points[i];
    (new_point ? distinct : repeated).push_back(i);
  }
  std::vector<size_t> chosen = distinct;
  if (count < distinct.size()) {
    std::vector<const Losses*> front;
    for (const size_t i : distinct) front.push_back(&points[i]);
    chosen = ChooseGreedily(CornersOf(front), count);
    for (size_t& choice : chosen) choice = distinct[choice];
  } else {
    std::sort(repeated.begin(), repeated.end());
    repeated.resize(std::min(repeated.size(), count - distinct.size()));
    chosen.insert(chosen.end(), repeated.begin(), repeated.end());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace hpo::sampler
