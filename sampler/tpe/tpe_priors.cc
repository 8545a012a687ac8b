#include "sampler/tpe/tpe_priors.h"

#include <utility>

#include "sampler/space/model_view.h"

namespace hpo::sampler {
namespace {

// The first completed trials, which lie widest, tell what a prior is worth.
constexpr size_t kMostJudgedLosses = 128;

}  // namespace

TpePriors::TpePriors(std::vector<PriorStudy> priors, MemoryPolicy policy, const TpeForm& form)
    : expected_(std::move(priors), policy) {
  for (const PriorStudy& study : studies()) {
    models_.push_back(std::make_unique<TpeModelCache>(policy, form));
    for (const auto& [number, trial] : study.history.trials()) {
      models_.back()->Observe(nullptr, trial);
    }
  }
}

PriorVote TpePriors::Choose(const History& history, const SearchSpace& space,
                            Bytes capacity) const {
  if (studies().empty()) return {};
  const CodedSpace coded(space);
  const InputSpace inputs(coded, ModelView::kQuality);
  PointTable points(inputs.num_axes());
  std::vector<double> losses;
  for (const auto& [number, trial] : history.trials()) {
    if (losses.size() == kMostJudgedLosses) break;
    if (trial.state != TrialState::kCompleted || trial.losses.empty()) continue;
    const std::optional<Codes> codes = coded.Encode(trial.params);
    if (!codes.has_value()) continue;
    points.Append(inputs.Point(*codes));
    losses.push_back(trial.losses.front());
  }
  PriorVote best;
  const std::vector<std::optional<Posterior>> posteriors = expected_.Get(inputs, coded, capacity);
  for (size_t i = 0; i < posteriors.size(); ++i) {
    if (!posteriors[i].has_value()) continue;
    std::vector<double> means;
    for (size_t j = 0; j < losses.size(); ++j) {
      means.push_back(posteriors[i]->PredictMean(points.Point(j), nullptr));
    }
    const double worth = PriorWorth(means, losses);
    if (worth > best.worth) best = {i, worth};
  }
  return best;
}

void TpePriors::Use(const History& history, const SearchSpace& space, Bytes capacity,
                    absl::FunctionRef<void(const TpeModel*, const PriorVote&)> use) const {
  const PriorVote vote = Choose(history, space, capacity);
  if (!(vote.worth > 0.0)) {
    use(nullptr, vote);
    return;
  }
  models_[vote.prior]->Use(studies()[vote.prior].history, space, capacity,
                           [&](const TpeModel& model) { use(&model, vote); });
}

}  // namespace hpo::sampler
