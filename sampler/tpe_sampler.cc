#include "sampler/tpe_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sampler/candidate_pool.h"
#include "sampler/qmc_sampler.h"
#include "sampler/random_sampler.h"
#include "sampler/random_stream.h"

namespace hpo {
namespace {

constexpr size_t kNumCandidates = 32;
// Rounds of candidates before random search for one that fits takes over.
constexpr int kMaxRounds = 8;

// Candidates from all sought densities until enough of them fit.
void DrawCandidates(const TpeModel& model, Rng& rng, CandidatePool& pool) {
  for (int round = 0; round < kMaxRounds && pool.fitting().size() < kNumCandidates; ++round) {
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

}  // namespace

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

std::pair<size_t, double> TpeSampler::BestOf(const std::vector<Candidate>& candidates,
                                             const TpeModel& model) const {
  std::vector<const ParamMap*> params;
  for (const Candidate& candidate : candidates) params.push_back(&candidate.params);
  const std::vector<double> scores = model.Score(params);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&scores](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto is_new = [&](size_t i) { return !configurations_.contains(params[i]); };
  const auto best_new = std::find_if(order.begin(), order.end(), is_new);
  const size_t best = best_new == order.end() ? order.front() : *best_new;
  return {best, scores[best]};
}

absl::StatusOr<Suggestion> TpeSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < spec_.startup_trials) {
    return SuggestAtStartup(context, history_, spec_);
  }
  Suggestion suggestion{.sampler = "tpe", .history_sequence = history_.sequence()};
  bool found = false;
  models_->Use(history_, context.space, context.capacity, [&](const TpeModel& model) {
    Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
    CandidatePool pool(context);
    DrawCandidates(model, rng, pool);
    found = !pool.fitting().empty();
    if (!found) return;
    const auto [best, score] = BestOf(pool.fitting(), model);
    suggestion.params = pool.fitting()[best].params;
    suggestion.fit = pool.fitting()[best].fit;
    suggestion.score = score;
  });
  if (!found) return SuggestAtRandom(context, history_, spec_);
  return suggestion;
}

}  // namespace hpo
