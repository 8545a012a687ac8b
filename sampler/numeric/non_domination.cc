// Tested by tests/sampler/several_objectives_test.cc.
#include "sampler/numeric/non_domination.h"

#include <algorithm>
#include <numeric>

#include "common/base/status.h"

namespace hpo::sampler {
namespace {

using Losses = std::vector<double>;

constexpr size_t kPointsBetweenLooks = 1000;

// Of different points that come in lexicographic order, by rank.
class Fronts {
 public:
  explicit Fronts(size_t count) : count_(count) {}

  size_t Add(const Losses& point) {
    const auto dominates = [&point](const Front& front) { return front.Dominates(point); };
    // What a front dominates, all fronts before it dominate.
    const auto front = std::partition_point(fronts_.begin(), fronts_.end(), dominates);
    const auto rank = static_cast<size_t>(front - fronts_.begin());
    if (rank == fronts_.size()) {
      if (num_points_ >= count_) return rank;
      fronts_.emplace_back();
    }
    fronts_[rank].points.push_back(&point);
    Count(rank);
    return rank;
  }

  // One more, equal to the point that was added last.
  void AddEqual(size_t rank) {
    if (rank < fronts_.size()) Count(rank);
  }

  size_t size() const { return fronts_.size(); }

 private:
  struct Front {
    // The newest first: in lexicographic order it has the least last one of two losses, so that it
    // alone decides.
    bool Dominates(const Losses& point) const {
      const auto no_larger = [&point](const Losses* other) {
        return std::equal(other->begin() + 1, other->end(), point.begin() + 1, std::less_equal());
      };
      if (point.size() == 2) return no_larger(points.back());
      return std::any_of(points.rbegin(), points.rend(), no_larger);
    }

    std::vector<const Losses*> points;
    size_t num_points = 0;  // with equal ones
  };

  // Drops the fronts that are not needed any more.
  void Count(size_t rank) {
    ++fronts_[rank].num_points;
    ++num_points_;
    while (num_points_ - fronts_.back().num_points >= count_) {
      num_points_ -= fronts_.back().num_points;
      fronts_.pop_back();
    }
  }

  size_t count_;
  std::vector<Front> fronts_;
  size_t num_points_ = 0;
};

// See NonDominationRanks and UndominatedPoints.
absl::StatusOr<std::vector<size_t>> RanksOf(std::span<const Losses> points, size_t count,
                                            absl::FunctionRef<bool()> cancelled) {
  const std::vector<size_t> order = LexicographicOrder(points);
  std::vector<size_t> ranks(points.size());
  Fronts fronts(count);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % kPointsBetweenLooks == 0 && cancelled()) {
      return absl::CancelledError("the caller has left");
    }
    const bool repeated = i > 0 && points[order[i]] == points[order[i - 1]];
    ranks[order[i]] = repeated ? ranks[order[i - 1]] : fronts.Add(points[order[i]]);
    if (repeated) fronts.AddEqual(ranks[order[i]]);
  }
  for (size_t& rank : ranks) rank = std::min(rank, fronts.size());
  return ranks;
}

}  // namespace

std::vector<size_t> LexicographicOrder(std::span<const Losses> points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&points](size_t a, size_t b) { return points[a] < points[b]; });
  return order;
}

absl::StatusOr<std::vector<size_t>> UndominatedPoints(std::span<const Losses> points,
                                                      absl::FunctionRef<bool()> cancelled) {
  HPO_ASSIGN_OR_RETURN(const std::vector<size_t> ranks, RanksOf(points, 1, cancelled));
  std::vector<size_t> front;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == 0) front.push_back(i);
  }
  return front;
}

std::vector<size_t> NonDominationRanks(std::span<const Losses> points, size_t count) {
  return *RanksOf(points, count, [] { return false; });
}

}  // namespace hpo::sampler
