// The default: lets the Gaussian process (gp_sampler.h) or TPE (tpe_sampler.h) speak, by a rule
// over the study and its history. Never refuses what one of them can do.
//
// Several objectives, or more than kMostForProcess finished trials: TPE, as the process knows one
// objective and its cost grows with the trials. TPE too where a quarter of the trials or more have
// failed: it learns from fewer of them what fails. Else the process, whatever the parameters; on
// published tables and functions it was ahead of TPE or level with it with few trials, also among
// choices and conditions. Where the last kPatience finished trials did not improve the study, both
// take turns: what one model holds for done, the other may not.
// The measurements behind the rule are in docs/sampler.md.
#pragma once

#include <memory>
#include <string>

#include "sampler/gaussian_process/gp_sampler.h"
#include "sampler/sampler.h"
#include "sampler/tpe_sampler.h"

namespace hpo {

// Who is to speak, and why.
struct AutoChoice {
  bool process = false;  // the Gaussian process, else TPE
  std::string why;
  bool operator==(const AutoChoice&) const = default;
};

// For trial `number` of a study with `num_objectives`. Pure; O(trials).
AutoChoice ChooseSampler(const History& history, size_t num_objectives, TrialNumber number);

// A suggestion's sampler reads "auto: gp (34 trials)", or "auto: random" before there is a model.
// Threads: as Sampler.
class AutoSampler final : public Sampler {
 public:
  explicit AutoSampler(const StudySpec& study);

  void Observe(const HistoryEvent& event) override;
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

 private:
  size_t num_objectives_;
  TpeSampler tpe_;
  GpSampler process_;
};

}  // namespace hpo
