#include "sampler/tpe/tpe_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sampler/simple/random_sampler.h"
#include "sampler/simple/startup.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
namespace {

constexpr size_t kNumCandidates = 24;
// Of a prior's model so many must fit too; they are drawn by the round as well.
constexpr size_t kLeastOfPrior = 12;
// After so many finished trials of the study itself a prior counts a quarter; soon nothing.
constexpr double kFading = 20.0;
// Rounds of candidates before random search for one that fits takes over.
constexpr int kMaxPoolRounds = 8;

// Candidates from all sought densities, so many of each at a time, until `enough` fit.
void DrawCandidates(const TpeModel& model, size_t enough, Rng& rng, CandidatePool& pool) {
  for (int round = 0; round < kMaxPoolRounds && pool.fitting().size() < enough; ++round) {
    std::vector<ParamMap> drawn;
    for (size_t i = 0; i < kNumCandidates; ++i) {
      if (auto params = model.DrawGood(rng); params.has_value()) {
        drawn.push_back(*std::move(params));
      }
      if (!model.learned_memory()) continue;
      if (auto params = model.DrawRunnable(rng); params.has_value()) {
        drawn.push_back(*std::move(params));
      }
    }
    pool.Add(std::move(drawn));
  }
}

// Of the sampler of this name, or of TPE as another sampler has it.
TpeForm FormOf(const std::string& sampler) {
  if (sampler == "tpe-joint") return {sampler, Dependence::kJoint, /*together=*/1.0};
  if (sampler == "tpe-group") {
    return {sampler, Dependence::kJoint, /*together=*/1.0, Grouping::kByConditions};
  }
  if (sampler == "tpe-univariate") return {sampler, Dependence::kIndependent, /*together=*/0.0};
  return {};
}

}  // namespace

TpeSampler::TpeSampler(const StudySpec& study, std::vector<PriorStudy> priors)
    : spec_(study.sampler),
      form_(FormOf(study.sampler.type)),
      models_(std::make_unique<TpeModelCache>(study.memory.policy, form_)),
      priors_(std::move(priors), study.memory.policy, form_),
      configurations_(0, HashOfParams{ModelledPart(study.space)},
                      SameParams{ModelledPart(study.space)}) {}

void TpeSampler::Observe(const HistoryEvent& event) {
  const auto before = history_.trials().find(event.trial.number);
  const bool is_new = before == history_.trials().end();
  models_->Observe(is_new ? nullptr : &before->second, event.trial);
  const bool replaced = !is_new && before->second.params != event.trial.params;
  history_.Apply(event);
  if (replaced) configurations_.clear();
  if (!replaced) configurations_.insert(&history_.trials().at(event.trial.number).params);
  if (!replaced) return;
  for (const auto& [number, trial] : history_.trials()) configurations_.insert(&trial.params);
}

size_t TpeSampler::BestOf(const std::vector<Candidate>& candidates,
                          const std::vector<double>& scores) const {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&scores](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto is_new = [&](size_t i) { return IsNew(candidates[i].params); };
  const auto best_new = std::find_if(order.begin(), order.end(), is_new);
  return best_new == order.end() ? order.front() : *best_new;
}

bool TpeSampler::SuggestByModel(const AskContext& context, const TpeModel& own,
                                const TpeModel* prior, double weight,
                                Suggestion& suggestion) const {
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  CandidatePool pool(context);
  DrawCandidates(own, kNumCandidates, rng, pool);
  if (prior != nullptr) {
    DrawCandidates(*prior, pool.fitting().size() + kLeastOfPrior, rng, pool);
  }
  if (std::none_of(pool.fitting().begin(), pool.fitting().end(),
                   [this](const Candidate& candidate) { return IsNew(candidate.params); })) {
    AddUntried(history_, rng, pool);
  }
  if (pool.fitting().empty()) return false;
  std::vector<const ParamMap*> params;
  for (const Candidate& candidate : pool.fitting()) params.push_back(&candidate.params);
  TpeScores scores = own.Score(params);
  if (prior != nullptr) scores.Multiply("prior", prior->Score(params).totals(), weight);
  const size_t best = BestOf(pool.fitting(), scores.totals());
  suggestion.params = pool.fitting()[best].params;
  suggestion.fit = pool.fitting()[best].fit;
  suggestion.score = scores.totals()[best];
  suggestion.reason = scores.Explain(best);
  return true;
}

absl::StatusOr<Suggestion> TpeSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < StartupTrials(spec_, context)) {
    return SuggestAtStartup(context, history_, spec_, priors_.studies());
  }
  Suggestion suggestion{.sampler = form_.name, .history_sequence = history_.sequence()};
  bool found = false;
  const SearchSpace& space = context.space;
  priors_.Use(history_, space, context.capacity, [&](const TpeModel* prior, const PriorVote& vote) {
    if (prior != nullptr) {
      suggestion.sampler =
          absl::StrCat(form_.name, ", ", DescribePrior(priors_.studies()[vote.prior], vote.worth));
    }
    const double own_trials = static_cast<double>(history_.num_finished());
    const double rest = kFading / (kFading + own_trials);
    const double weight = vote.worth * rest * rest;
    models_->Use(history_, space, context.capacity, [&](const TpeModel& own) {
      found = SuggestByModel(context, own, prior, weight, suggestion);
    });
  });
  if (!found) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  return suggestion;
}

}  // namespace hpo::sampler
