// How far memory estimates can be trusted, learnt from what trials really used.
//
// An attempt that ran teaches a score s = (actual - predicted) / predicted; an OOM teaches that s
// is more than a bound (a censored score). Scores are kept apart by class (ResidualClass), each
// with a factor q: a configuration is admitted where predicted x (1 + q) fits. Per class:
//   1. n scores; k = ceil((n + 1)(1 - alpha)). Where k <= n, the k-th smallest: of exchangeable
//      scores the next one exceeds it with probability at most alpha.
//   2. Where k > n (fewer than 1 / alpha - 1 scores): the cold-start value or the largest score,
//      whichever is more.
//   3. Never below the largest of the last kRecentScores scores: exchangeability is an assumption,
//      and what was just seen may come again. Never below 0: an estimate that is too high is
//      corrected in the estimate.
//   4. A censored score counts as the larger of its bound and the factor at that time, so that it
//      never lowers the factor.
//   5. alpha starts at its target, falls when a score exceeds the factor and recovers when none
//      does (adaptive conformal inference); it is never above the target.
// The last kMaxScores scores of a class count.
//
// Everything is a fold over residuals in the order in which they were stored: the same residuals
// give the same factors. Values; const calls are safe from any thread.
// Sources: Vovk et al. 2005, Algorithmic Learning in a Random World, section 4.5 (Mondrian); Lei et
// al. 2018 (arXiv:1604.04173), section 2.2 (split conformal); Gibbs & Candes 2021
// (arXiv:2106.00170), section 2 (adaptive).
#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/study/trial.h"
#include "memory/need/memory_estimate.h"

namespace hpo::memory {

// An OOM at a limit is taken to have needed this much of it.
inline constexpr double kNeedBeyondLimit = 1.02;

// Of the predicted need.
enum class NeedBand { kBelow2GiB, kFrom2To10GiB, kAbove10GiB };

NeedBand BandOf(Bytes needed);

// Scores are compared within a class only. A function of the prediction and the kind of device, so
// that it is known before the run. Whether the need is fragile makes no class: it is the largest of
// the orders' already, and neighbouring batches would have margins that are far apart.
struct ResidualClass {
  std::string device_kind;  // DeviceProfile::kind
  NeedBand band = NeedBand::kBelow2GiB;
  auto operator<=>(const ResidualClass&) const = default;
};

ResidualClass ClassOf(const MemoryEstimate& estimate, absl::string_view device_kind);

// What one attempt showed of its estimate.
struct Residual {
  ResidualClass residual_class;
  double score = 0.0;     // finite
  bool censored = false;  // the score is a lower bound
  bool operator==(const Residual&) const = default;
};

// The score of an attempt that ran to its end under the plan that `predicted` is for: the largest
// of what it reported of live, reserved and device bytes, each against its own prediction. nullopt
// where it reported nothing.
std::optional<double> ExactScore(const MemoryEstimate& predicted, const MemoryReport& report);

// The bound that an OOM at `limit` sets: it would have needed 2 % more, at least. nullopt where the
// limit was below the prediction, which an OOM then only confirms.
std::optional<double> CensoredScore(const MemoryEstimate& predicted, Bytes limit);

struct CalibrationOptions {
  double alpha = 0.02;            // accepted share of attempts that need more than admitted with
  double smallest_alpha = 0.001;  // how far under-estimates may push it down
  double adaptation = 0.01;       // its step, gamma
};

// The factors of all classes. Default-constructed: no evidence, cold-start values.
class MarginTable {
 public:
  static constexpr size_t kRecentScores = 50;
  static constexpr size_t kMaxScores = 1000;

  MarginTable() = default;
  explicit MarginTable(const CalibrationOptions& options) : options_(options) {}

  // A residual whose score is not finite is ignored.
  void Observe(const Residual& residual);

  // At least 0. O(log classes).
  double Factor(const ResidualClass& residual_class) const;

  // The largest factor of a class of `device_kind` whose needs are at most `need`.
  double LargestFactor(absl::string_view device_kind, Bytes need) const;

  // The largest need up to `bound` that, with the margin of its own band, is within `usable`; 0
  // where none is.
  Bytes LargestNeed(absl::string_view device_kind, Bytes usable, Bytes bound) const;

  // Factor before any evidence: 0 on a CPU, where the estimate is an upper bound by construction;
  // elsewhere 3 %.
  static double ColdStart(absl::string_view device_kind);

  bool operator==(const MarginTable& other) const { return classes_ == other.classes_; }

 private:
  struct Evidence {
    std::deque<double> scores;  // oldest first
    double alpha = 0.0;
    double factor = 0.0;
    bool operator==(const Evidence&) const = default;
  };

  static double FactorOf(const Evidence& evidence, double cold_start);

  CalibrationOptions options_;
  std::map<ResidualClass, Evidence> classes_;
};

// `needed` with the margin `factor` on top, rounded up.
Bytes WithMargin(Bytes needed, double factor);

}  // namespace hpo::memory
