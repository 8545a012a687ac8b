#include "worker/trainer/scores/quadruplet_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "worker/text/data/quadruplets.h"

namespace hpo::trainer {
namespace {

// In [0, 1]: 1 where both points are the same.
double Nearness(const text::Aspect& a, const text::Aspect& b) {
  constexpr double kSide = double{text::kMostRating} - double{text::kLeastRating};
  const double distance =
      std::hypot(double{a.valence} - double{b.valence}, double{a.arousal} - double{b.arousal});
  return std::max(0.0, 1.0 - distance / (std::sqrt(2.0) * kSide));
}

double Ratio(double found, int64_t all) {
  return all == 0 ? 0.0 : 2.0 * found / static_cast<double>(all);
}

}  // namespace

void QuadrupletScores::AddText(std::span<const text::Aspect> actual,
                               std::span<const text::Aspect> said) {
  std::map<std::array<std::string, 3>, const text::Aspect*> there;
  for (const text::Aspect& quadruplet : actual)
    there.emplace(text::QuadrupletKey(quadruplet), &quadruplet);
  actual_ += static_cast<int64_t>(there.size());
  said_ += static_cast<int64_t>(said.size());
  for (const text::Aspect& quadruplet : said) {
    const auto same = there.find(text::QuadrupletKey(quadruplet));
    if (same == there.end()) continue;
    ++found_;
    found_continuous_ += Nearness(*same->second, quadruplet);
  }
}

void QuadrupletScores::Summarize(Metrics& metrics) const {
  metrics["quadruplet_f1"] = Ratio(static_cast<double>(found_), said_ + actual_);
  metrics["quadruplet_cf1"] = Ratio(found_continuous_, said_ + actual_);
}

}  // namespace hpo::trainer
