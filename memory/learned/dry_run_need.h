// Whether a configuration fits a GPU, as dry runs and trials have shown, or whether that needs a
// dry run of its own.
//
// A dry run is exact about torch's allocator, and off by what it does not know of this GPU: the
// context and the workspaces of libraries. That offset is about the same for all configurations. It
// is estimated from those that were both dry-run and run: a low quantile, as what ran may have kept
// more than it needs. Before there is one, the margin of the dry runs counts.
//
// What is known of a configuration that was not dry-run:
//   - One that is no larger in anything than one that fits, fits; one that is no smaller than one
//     that does not, does not. The margin is by how much the known needs contradict this.
//   - A sum of products (product_fit.h) that was fitted to all known needs says so beyond a margin:
//     the largest error near the limit in cross-validation, wider where the fit has to reach far
//     and where few needs near the limit are known. Each choice of the configuration has to be
//     known near the limit. That it fits also has to follow from a known need of the same choices,
//     if needs grow no faster than each number.
// All else is not sure, and nothing is before kFewestKnown needs are known.
//
// Immutable; safe from any thread. A decision costs microseconds, the construction milliseconds.
// Source: docs/adr/036-dry-runs-in-studies.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "memory/learned/learned_need.h"
#include "memory/learned/product_fit.h"
#include "memory/need/need_terms.h"

namespace hpo::memory {

// What a dry run found of a configuration.
struct DryRunFinding {
  ParamMap params;
  bool measured = true;  // false: it could not be dry-run, or depends on values that are not known
  Bytes required;        // device memory, without what the dry run does not know of this GPU
  Bytes margin;          // of what it does not know
};

// All that is known of a study's needs on one kind of GPU.
struct DryRunEvidence {
  std::span<const NeedObservation> seen;  // trials, as LearnedNeed takes them
  std::span<const DryRunFinding> findings;
  Bytes usable;  // near which decisions are made
  // Memory beyond the usable bytes that is kept free only as needs are not known well: a
  // configuration that was dry-run may use it.
  Bytes spare;
};

class DryRunNeed {
 public:
  static constexpr size_t kFewestKnown = 8;

  // `relevant`: see NeedTerms.
  DryRunNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
             const DryRunEvidence& evidence);

  // Not `sure`: a dry run of `params` would show whether it fits; `fits` is true then. nullopt: it
  // was dry-run in vain.
  std::optional<LearnedFit> Decide(const ParamMap& params, Bytes usable) const;

 private:
  // Margins of the fit, logarithms: of needs above and below what is predicted.
  struct Margins {
    double above = 0.0;
    double below = 0.0;
  };

  void TakeKnown(const DryRunEvidence& evidence);
  Margins CrossValidate() const;
  double LargestContradiction() const;
  std::optional<LearnedFit> AsNeighbours(const NeedPoint& point, double usable) const;
  LearnedFit AsFitted(const NeedPoint& point, double usable) const;
  bool IsNearLimitFromBelow(double bytes) const;
  bool IsNearLimitFromAbove(double bytes) const;
  // Whether each choice of the point is known of enough needs, one of them on that side.
  bool KnowsChoices(const NeedPoint& point, bool below) const;
  // Whether a known need of the same choices, grown with each number, stays within `usable`.
  bool GrowsWithin(const NeedPoint& point, double usable) const;

  std::vector<DryRunFinding> findings_;
  double around_ = 0.0;
  double spare_ = 0.0;
  double offset_ = 0.0;  // of a need from what its dry run found
  NeedTerms terms_;
  std::vector<KnownNeed> known_;
  std::vector<KnownNeed> ooms_;  // need more
  std::optional<ProductFit> fit_;
  std::vector<Direction> directions_;
  Margins margins_;
  double contradiction_ = 0.0;  // margin of comparisons, a logarithm
};

}  // namespace hpo::memory
