// Whether a configuration fits a GPU, as dry runs and trials have shown, or whether that needs a
// dry run of its own.
//
// A dry run is exact about torch's allocator, and off by what it does not know of this GPU: the
// context and the workspaces of libraries. That offset is about the same for all configurations. It
// is estimated from those that were both dry-run and run; before there is one, the dry run's own
// margin counts. What is known of a configuration that was neither dry-run nor run:
//   - One that is no larger in anything than one that fits, fits; one that is no smaller than one
//     that does not, does not. By how much needs that are known contradict this, is its margin.
//   - A fit over sums of products (product_fit.h) beyond a margin on both sides: the largest of the
//     errors of cross-validation, in which each need is predicted by a fit to others, by
//     sqrt(1 + leverage), times a factor; at least a few percent. What lies within the margin is not
//     sure.
// Where few needs are known nothing is sure.
//
// Immutable; safe from any thread. A decision costs microseconds, the construction tens of
// milliseconds. Sources: learned_need.h; docs/adr/035.
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

class DryRunNeed {
 public:
  // Before so many configurations are known nothing is sure but of those.
  static constexpr size_t kFewestKnown = 8;

  // `relevant`: see NeedTerms. `seen`: trials, as LearnedNeed takes them.
  DryRunNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
             std::span<const NeedObservation> seen, std::span<const DryRunFinding> findings);

  // Not `sure`: a dry run of `params` would show whether it fits; `fits` is true then. nullopt: it
  // was dry-run in vain.
  std::optional<LearnedFit> Decide(const ParamMap& params, Bytes usable) const;

 private:
  void LearnOffset(std::span<const NeedObservation> seen);
  void TakeKnown(std::span<const NeedObservation> seen);
  void LearnMargins(const NeedTerms& candidates);
  void LearnContradiction();
  std::optional<LearnedFit> AsDryRun(const ParamMap& params, Bytes usable) const;
  std::optional<LearnedFit> AsNeighbours(const NeedPoint& point, Bytes usable) const;
  LearnedFit AsFitted(const NeedPoint& point, Bytes usable) const;

  std::vector<DryRunFinding> findings_;
  double offset_ = 0.0;  // of a need from what its dry run found
  bool knows_offset_ = false;
  NeedTerms terms_;
  std::vector<KnownNeed> known_;
  std::vector<KnownNeed> ooms_;  // need more
  std::vector<KnownNeed> ran_;   // need no more
  std::optional<ProductFit> fit_;
  std::vector<Direction> directions_;
  double above_ = 0.0;           // margins of the fit, logarithms
  double below_ = 0.0;
  double contradiction_ = 0.0;  // margin of comparisons, a logarithm
};

}  // namespace hpo::memory
