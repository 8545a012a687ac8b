// Tree-structured Parzen estimator, with memory and failures as constraints of their own.
//
// Quality: finished trials are split into good and the rest (trial_split.h), and each side gets a
// Parzen density over all modelled parameters. Of one objective a quarter are good, and the better
// one is the more it counts. Running ones are on no side: the more there are, the fewer trials are
// good and the more the best of them count (ShareBeside).
// Candidates take half of their parameters from one good trial and each other from a good trial of
// its own that has it (model_space.h), so that parameters with conditions are drawn and judged by
// the trials in which they exist. They are judged by the joint density times the product of its
// marginals, each to a power: the first knows what parameters do together, the second learns faster
// what each does alone. (Optuna draws whole trials and takes the first alone: tpe-joint here; with
// `group`, a joint density for the parameters of each list of conditions: tpe-group. Each parameter
// for itself, by the marginals alone, is tpe-univariate.)
// What a trial has had already is not proposed while a candidate is left whose modelled part none
// has had; where none is, some of what is left of a small space are candidates too.
// Memory, known: candidates are drawn from the densities of what is sought, inside the allowed
// domains, and only those that fit the asking capacity are scored. Never a fake bad score.
// Memory, learned: trials that ran out of memory at a limit of the asking capacity or more teach a
// second pair of densities, of what fits and what does not, and stay out of the first. Candidates
// come from both sought densities, and the acquisition is r_quality * (r_memory * r_failure)^2 with
// the relative ratios r = 1 / (gamma + (1 - gamma) * above / below), gamma = |below| / (|below| +
// |above|); r_memory is 1 as long as nothing ran out of memory, r_failure as long as none failed.
// Unlike its source, memory takes the product of the marginals for its densities: memory depends on
// few of the parameters, one way each, and ten out-of-memory trials must be enough to see it.
// Failures take the joint density: what fails together is seldom of one parameter.
// Constraints: completed trials that violate one are the last to be good, those that do so least
// first (trial_split.h), and once there are such and feasible ones r_constraints, of the feasible
// against the violating trials by joint densities, is a factor of the acquisition.
// Source: Watanabe & Hutter 2023 (c-TPE, arXiv:2211.14411) over Optuna 5.0's estimator
// (optuna/samplers/_tpe).
// Earlier studies: the one that predicts this study best adds its candidates to the study's own,
// and its score times a weight to theirs (tpe_priors.h). The weight is what it is worth times n0 /
// (n0 + n), n being the study's finished trials: their word counts ever more. Trials are coded,
// sorted and weighed as they are observed (tpe_model.h); a suggestion costs one pass over them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "sampler/api/sampler.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/modelled_part.h"
#include "sampler/tpe/tpe_model_cache.h"
#include "sampler/tpe/tpe_priors.h"

namespace hpo::sampler {

// Threads: as Sampler.
class TpeSampler final : public Sampler {
 public:
  // The study's memory policy says what a trial's memory use means for smaller cards (MemoryNeed);
  // its space says what is modelled.
  explicit TpeSampler(const StudySpec& study, std::vector<PriorStudy> priors = {});

  void Observe(const HistoryEvent& event) override;
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

 private:
  // By the modelled part of what they point to.
  struct HashOfParams {
    ModelledPart part;
    size_t operator()(const ParamMap* params) const { return part.Hash(*params); }
  };
  struct SameParams {
    ModelledPart part;
    bool operator()(const ParamMap* a, const ParamMap* b) const { return part.Same(*a, *b); }
  };

  // What models make of `context`, into `suggestion`; false where no candidate fits.
  bool SuggestByModel(const AskContext& context, const TpeModel& own, const TpeModel* prior,
                      double weight, Suggestion& suggestion) const;

  bool IsNew(const ParamMap& params) const { return !configurations_.contains(&params); }

  // The candidate of the best of the `scores` among those that are new, where there is one; the
  // first of equals.
  size_t BestOf(const std::vector<Candidate>& candidates, const std::vector<double>& scores) const;

  SamplerSpec spec_;
  TpeForm form_;
  History history_;
  std::unique_ptr<TpeModelCache> models_;
  TpePriors priors_;
  // What trials have had; held by the history.
  absl::flat_hash_set<const ParamMap*, HashOfParams, SameParams> configurations_;
};

}  // namespace hpo::sampler
