// Tested by tests/memory/plan/space_survey_test.cc.
#include "memory/plan/space_cut.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hpo::memory {

void FitTallies::Count(const ParamMap& params, bool fits) {
  misfits_ += fits ? 0 : 1;
  for (const auto& [name, value] : params) {
    ++(fits ? tallies_[name][value].fits : tallies_[name][value].misfits);
  }
}

template <typename Visit>
void FitTallies::ForEachCut(const std::string& name, const ByValue& by_value, Visit visit) {
  if (by_value.size() < 2) return;
  if (!AsNumber(by_value.begin()->first).has_value()) {
    for (const auto& [value, out] : by_value) {
      visit(absl::StrCat("without ", FormatParam(value)), out);
    }
    return;
  }
  Tally above = by_value.rbegin()->second;
  for (auto value = std::next(by_value.rbegin()); value != by_value.rend(); ++value) {
    visit(absl::StrCat(name, " <= ", FormatParam(value->first)), above);
    above += value->second;
  }
}

std::optional<SpaceCut> FitTallies::BestCut() const {
  if (misfits_ == 0) return std::nullopt;
  std::optional<SpaceCut> best;
  double best_quality = 0.0;
  for (const auto& [name, by_value] : tallies_) {
    ForEachCut(name, by_value, [&](std::string description, const Tally& out) {
      const double quality =
          static_cast<double>(out.misfits) / static_cast<double>(out.misfits + out.fits + misfits_);
      if (quality <= best_quality) return;
      best_quality = quality;
      best = {.parameter = name,
              .description = std::move(description),
              .misfits_removed = out.misfits,
              .misfits_left = misfits_ - out.misfits,
              .fits_lost = out.fits};
    });
  }
  return best;
}

}  // namespace hpo::memory
