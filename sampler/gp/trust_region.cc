#include "sampler/gp/trust_region.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sampler/gp/surrogate/loss_scale.h"

namespace hpo::sampler {
namespace {

// Before, nothing was learnt to look closely at.
constexpr size_t kFirstTrials = 10;
constexpr double kWidest = 0.4;
// Where a box is narrower, the place is done with.
constexpr double kNarrowest = 0.02;
constexpr size_t kGainsToWiden = 3;
constexpr size_t kLeastPatience = 4;
// What lies no further from a place that is done with belongs to it.
constexpr double kReach = 0.1;
// A process of the region is over so many of the nearest for each of its axes, and no more than so
// many in all.
constexpr size_t kNearestPerAxis = 5;
constexpr size_t kMostNearest = 160;

// Trials one after another, as the box met them.
class Walk {
 public:
  Walk(const PointTable& points, std::span<const double> losses, size_t num_running)
      : losses_(losses),
        patience_(std::max(kLeastPatience, points.num_axes()) + num_running / 2),
        reference_(StartingReference(losses)),
        least_(losses[0]) {
    for (size_t i = 0; i < points.size(); ++i) points_.push_back(points.Point(i));
  }

  TrustRegion Run() {
    for (size_t i = 1; i < losses_.size(); ++i) Meet(i);
    TrustRegion region{.center = center_, .side = side_, .nearest = Nearest()};
    for (const size_t i : region.nearest) region.in_box.push_back(InBox(Distance(i, center_)));
    return region;
  }

 private:
  // By the axis on which they are furthest apart; choices are 1 apart.
  double Distance(size_t a, size_t b) const {
    double largest = 0.0;
    for (size_t axis = 0; axis < points_[a].size(); ++axis) {
      largest = std::max(largest, std::abs(points_[a][axis] - points_[b][axis]));
    }
    return std::min(largest, 1.0);
  }

  bool InBox(double distance) const { return distance <= 0.5 * side_ + kRounding; }

  bool Reached(size_t place, size_t i) const { return Distance(place, i) < kReach; }

  bool DoneWith(size_t i) const {
    return std::any_of(done_.begin(), done_.end(), [&](size_t place) { return Reached(place, i); });
  }

  void Meet(size_t i) {
    if (reference_.Gains(losses_[i], least_)) {
      std::erase_if(done_, [&](size_t place) { return Reached(place, i); });
    }
    least_ = std::min(least_, losses_[i]);
    const bool better = losses_[i] < losses_[center_] && !DoneWith(i);
    if (i >= kFirstTrials) Count(i, better);
    if (better) center_ = i;
    if (side_ < kNarrowest) StartElsewhere(i);
  }

  void Count(size_t i, bool better) {
    const double distance = Distance(i, center_);
    if (!InBox(distance)) {
      if (!better) return;
      side_ = std::clamp(2.0 * distance, side_, kWidest);
      num_gains_ = num_misses_ = 0;
    } else if (better && reference_.Gains(losses_[i], losses_[center_])) {
      num_misses_ = 0;
      if (++num_gains_ < kGainsToWiden) return;
      side_ = std::min(2.0 * side_, kWidest);
      num_gains_ = 0;
    } else {
      num_gains_ = 0;
      if (++num_misses_ < patience_) return;
      side_ /= 2.0;
      num_misses_ = 0;
    }
  }

  // Around the best of the trials up to `last` that is not of a place done with; where there is
  // none, all places are open again.
  void StartElsewhere(size_t last) {
    side_ = kWidest;
    num_gains_ = num_misses_ = 0;
    done_.push_back(center_);
    std::optional<size_t> best;
    for (size_t i = 0; i <= last; ++i) {
      if (!DoneWith(i) && (!best.has_value() || losses_[i] < losses_[*best])) best = i;
    }
    if (!best.has_value()) done_.clear();
    center_ = best.value_or(center_);
  }

  std::vector<size_t> Nearest() const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < points_.size(); ++i) order.push_back({Distance(i, center_), i});
    std::sort(order.begin(), order.end());
    const size_t least = kNearestPerAxis * (points_[center_].size() + 2);
    std::vector<size_t> nearest;
    for (const auto& [distance, i] : order) {
      if (nearest.size() >= (distance <= side_ ? kMostNearest : least)) break;
      nearest.push_back(i);
    }
    std::sort(nearest.begin(), nearest.end());
    return nearest;
  }

  static constexpr double kRounding = 1e-9;

  std::vector<std::vector<double>> points_;
  std::span<const double> losses_;
  size_t patience_;
  LossReference reference_;
  size_t center_ = 0;
  double least_;  // of all met
  double side_ = kWidest;
  size_t num_gains_ = 0;      // in the box, one after another
  size_t num_misses_ = 0;     // likewise
  std::vector<size_t> done_;  // centers of places done with
};

}  // namespace

TrustRegion FindTrustRegion(const PointTable& points, std::span<const double> losses,
                            size_t num_running) {
  return Walk(points, losses, num_running).Run();
}

}  // namespace hpo::sampler
