// What to remove from a search space so that more of the rest fits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/space/params.h"

namespace hpo::memory {

// What is left of the space when one parameter is held below a value, or one choice is dropped.
struct SpaceCut {
  std::string parameter;
  std::string description;  // "tok.max_length <= 320", "without bert-large-uncased"
  int64_t misfits_removed = 0;
  int64_t misfits_left = 0;
  int64_t fits_lost = 0;
};

// Counts configurations that fit and those that do not, by each value of each parameter. One owner
// thread.
class FitTallies {
 public:
  void Count(const ParamMap& params, bool fits);

  // The cut whose removed part is most like what does not fit: the largest Dice coefficient, twice
  // the misfits removed by the sum of everything removed and all misfits. nullopt where all fits,
  // or there is nothing to cut.
  std::optional<SpaceCut> BestCut() const;

 private:
  struct Tally {
    int64_t fits = 0;
    int64_t misfits = 0;
    void operator+=(const Tally& other) {
      fits += other.fits;
      misfits += other.misfits;
    }
  };
  using ByValue = std::map<ParamValue, Tally>;

  // Gives `visit` the cuts of one parameter: everything above a value, or one choice.
  template <typename Visit>
  static void ForEachCut(const std::string& name, const ByValue& by_value, Visit visit);

  std::map<std::string, ByValue> tallies_;
  int64_t misfits_ = 0;
};

}  // namespace hpo::memory
