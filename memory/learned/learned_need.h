// How much memory a configuration needs, learnt from what others used: for trainers of which
// nothing is known but what they report.
//
// What a tensor takes is a product of sizes, so what a program takes is a sum of products with
// non-negative weights:  need(x) = sum of w_k * x_1^e_k1 * x_2^e_k2 * ...,  w_k >= 0,  exponents
// -1, 1 and 2, and 2^x for small whole numbers. -1 is for what splits the work, such as
// accumulation steps. Choices that are not numbers have products of their own on top of the common
// ones.
//   - Fit: non-negative least squares of relative errors over all products (need_terms.h), which
//     takes few of them. An OOM takes part as 2 % above its limit where the fit is below that.
//   - Margin: split-conformal over the leave-one-out errors of the fit (log of use to prediction,
//     by sqrt(1 + leverage)), times sqrt(1 + leverage) of the new configuration: more where the
//     fit has to reach far. With few uses a floor that shrinks with each.
//   - What was seen beats what is fitted: a configuration no larger in anything than one that ran
//     within the limit fits; one no smaller than one that met an OOM there does not. What larger
//     means goes by the exponents that the fit uses; before the first fit, by the numbers.
//   - An OOM that no parameter explains is noise, and is left out: where no parameter counts (all
//     are real numbers, say), and where a configuration that is no smaller ran with a tenth to
//     spare.
//   - A few OOMs do not refuse a whole space: see AsLastResort.
//
// Immutable; safe from any thread. A prediction costs microseconds, a fit milliseconds.
// Sources: nonnegative_least_squares.h; leave-one-out errors from leverages: Allen 1974 (PRESS),
// doi:10.1080/00401706.1974.10489157; conformal margins: calibration.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "memory/learned/nonnegative_least_squares.h"
#include "memory/learned/product_fit.h"
#include "memory/need/need_terms.h"

namespace hpo::memory {

// What one trial taught. `censored`: an OOM, the need is more than `bytes`. `unmeasured`: it ran
// within `bytes`, and nobody knows how much of them it used. Else `bytes` were used.
struct NeedObservation {
  ParamMap params;
  Bytes bytes;
  bool censored = false;
  bool unmeasured = false;
  bool operator==(const NeedObservation&) const = default;
};

// The answer for one configuration.
struct LearnedFit {
  bool fits = true;
  Bytes expected;    // 0: not known yet
  Bytes needed;      // with its margin; 0: not known yet
  bool sure = true;  // false: a dry run would tell (dry_run_need.h)

  // False: it fits only as nothing speaks against it.
  bool IsKnown() const { return needed > Bytes{} || !fits; }
  bool operator==(const LearnedFit&) const = default;
};

class LearnedNeed {
 public:
  static constexpr size_t kFewestUses = 4;  // before the first fit
  // Accepted share of configurations that need more than they were admitted with.
  static constexpr double kRisk = 0.1;

  // Knows nothing: everything fits.
  LearnedNeed() = default;

  // `relevant`: see NeedTerms. Observations of no bytes are left out.
  LearnedNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
              std::span<const NeedObservation> observations);

  LearnedFit Decide(const ParamMap& params, Bytes usable) const;

  // Whether an OOM of this configuration at `limit` may be due to its parameters. False: it is
  // noise. `limit` 0: not known.
  bool Explains(const ParamMap& params, Bytes limit) const;

  // Whether OOMs are known and nothing that ran within `usable` bytes is allowed any more.
  bool LeavesNothing(Bytes usable) const;
  // The same evidence for a space of which it would leave nothing: what ran within the limit fits,
  // whatever OOMs say; any other configuration is refused by OOMs only where three trials no larger
  // met one; and what is fitted counts without its margin.
  LearnedNeed AsLastResort() const;

 private:
  struct Seen {
    NeedPoint point;
    Bytes bytes;
  };
  void LearnFrom(const NeedTerms& candidates);
  void FitTerms(const NeedTerms& candidates, std::span<const Seen> ooms);
  void LearnMargin(const Columns& rows_by_term);
  LearnedFit Predict(const NeedPoint& point, Bytes usable) const;
  LearnedFit DecidePoint(const NeedPoint& point, Bytes usable) const;
  // Where a configuration no smaller ran within `usable` bytes: that this one fits.
  std::optional<LearnedFit> AsWhatRan(const NeedPoint& point, Bytes usable,
                                      const LearnedFit& predicted) const;
  bool IsExplained(const Seen& oom) const;
  void LeaveOutUnexplained();
  bool IsNoLarger(const NeedPoint& a, const NeedPoint& b) const;

  std::vector<Seen> uses_;
  std::vector<Seen> ran_;  // within so many bytes
  std::vector<Seen> ooms_;
  NeedTerms terms_;  // those of the fit; before the first, all
  NonNegativeFit fit_;
  double margin_ = 0.0;
  std::vector<Direction> directions_;  // by number
  bool is_last_resort_ = false;
};

}  // namespace hpo::memory
