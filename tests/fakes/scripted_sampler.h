// A sampler that walks through the choices of its space's first parameter, and remembers what it
// was told. Where nothing fits it says so as the real ones do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sampler/api/pruner.h"
#include "sampler/api/sampler.h"

namespace hpo {

class ScriptedSampler final : public sampler::Sampler {
 public:
  void Observe(const sampler::HistoryEvent& event) override { history_.Apply(event); }

  // train.batch_size = 1 + number % 64, where that fits.
  absl::StatusOr<sampler::Suggestion> Suggest(const sampler::AskContext& context) const override {
    sampler::Suggestion suggestion{.sampler = "scripted", .history_sequence = history_.sequence()};
    suggestion.params["train.batch_size"] = int64_t{1} + context.number.value % 64;
    if (const Parameter* model = context.space.Find("model.name")) {
      const auto& choices = std::get<CategoricalDomain>(model->domain).choices;
      suggestion.params["model.name"] =
          choices[static_cast<size_t>(context.number.value) % choices.size()];
    }
    if (context.feasibility) {
      suggestion.fit = context.feasibility({&suggestion.params, 1}).front();
      if (!suggestion.fit.fits) {
        return absl::FailedPreconditionError(
            absl::StrCat("nothing fits: needs ", FormatBytes(suggestion.fit.needed)));
      }
    }
    return suggestion;
  }

 private:
  sampler::History history_;
};

// Stops a trial whose last intermediate loss is above the threshold.
class ScriptedPruner final : public sampler::Pruner {
 public:
  explicit ScriptedPruner(double threshold) : threshold_(threshold) {}

  std::optional<sampler::PruneDecision> Decide(const sampler::History& history,
                                               TrialNumber trial) const override {
    const auto& values = history.trials().at(trial).intermediate;
    if (values.empty() || values.rbegin()->second <= threshold_) return std::nullopt;
    return sampler::PruneDecision{
        .pruner = "threshold", .step = values.rbegin()->first, .why = "too high"};
  }

 private:
  const double threshold_;
};

}  // namespace hpo
