// The default: the Gaussian process (gp_sampler.h), TPE (tpe_sampler.h) or CMA-ES
// (cma_es_sampler.h), by a rule over the study and its history. Never refuses what one of them can
// do.
//
// Several objectives: TPE. More than kMostForProcess finished trials, as the process's cost grows
// with them: CMA-ES where the space suits it, else TPE. Where it suits CMA-ES and the study's
// budget is of many trials, CMA-ES from kMostBeforeMany on while few run at once. TPE too where a
// quarter of the trials or more have failed: it learns from fewer of them what fails. Else the
// process, whatever the parameters. The measurements behind the rule are in docs/adr/007.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sampler/api/sampler.h"
#include "sampler/cma_es/cma_es_sampler.h"
#include "sampler/gp/gp_sampler.h"
#include "sampler/tpe/tpe_sampler.h"

namespace hpo::sampler {

enum class Proposer { kProcess, kTpe, kCmaEs };

// What is to propose, and why.
struct AutoChoice {
  Proposer proposer = Proposer::kTpe;
  std::string why;
  bool operator==(const AutoChoice&) const = default;
};

// What the choice knows of a study apart from its history.
struct AutoTraits {
  size_t num_objectives = 1;
  bool suits_cma_es = false;
  std::optional<int64_t> budget_trials;
};

// Pure; O(trials).
AutoChoice ChooseSampler(const History& history, const AutoTraits& study);

// A suggestion's sampler reads "auto: gp (34 trials)", or "auto: random" before there is a model.
// Threads: as Sampler.
class AutoSampler final : public Sampler {
 public:
  AutoSampler(const StudySpec& study, std::vector<PriorStudy> priors);

  void Observe(const HistoryEvent& event) override;
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

 private:
  absl::StatusOr<Suggestion> Ask(Proposer proposer, const AutoTraits& study,
                                 const AskContext& context) const;

  AutoTraits traits_;
  TpeSampler tpe_;
  GpSampler process_;
  CmaEsSampler cma_es_;
};

}  // namespace hpo::sampler
