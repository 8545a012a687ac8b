#include "sampler/priors/prior_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "sampler/priors/trial_split.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/modelled_part.h"

namespace hpo::sampler {
namespace {

double WorstIfNotFinite(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

// From 1; equal values share the middle of their places.
std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto value = [&](size_t i) { return WorstIfNotFinite(values[i]); };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return value(a) < value(b); });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && value(order[end]) == value(order[begin])) ++end;
    const double rank = 0.5 * static_cast<double>(begin + end + 1);
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

double Correlation(std::span<const double> a, std::span<const double> b) {
  const double count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double aa = 0.0;
  double bb = 0.0;
  double ab = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  return aa > 0.0 && bb > 0.0 ? ab / std::sqrt(aa * bb) : 0.0;
}

// The finished trials of the better half, the best first.
std::vector<const HistoryTrial*> BetterHalf(const PriorStudy& prior) {
  std::vector<const HistoryTrial*> trials;
  for (const auto& [number, trial] : prior.history.trials()) {
    if (IsFinished(trial)) trials.push_back(&trial);
  }
  std::sort(trials.begin(), trials.end(), [](const HistoryTrial* a, const HistoryTrial* b) {
    return QualityKeyOf(*a) < QualityKeyOf(*b);
  });
  trials.resize((trials.size() + 1) / 2);
  return trials;
}

}  // namespace

double PriorWorth(std::span<const double> expected, std::span<const double> losses) {
  constexpr size_t kLeast = 4;
  HPO_CHECK(expected.size() == losses.size());
  if (losses.size() < kLeast) return 0.0;
  const double r = Correlation(RanksOf(expected), RanksOf(losses));
  if (r <= 0.0) return 0.0;
  const double by_chance = (1.0 - r * r) / (r * r * static_cast<double>(losses.size() - 2));
  return r * std::max(0.0, 1.0 - by_chance);
}

std::string DescribePrior(const PriorStudy& prior, double worth) {
  return absl::StrFormat("prior %s %.2f", prior.name, worth);
}

std::optional<Suggestion> SuggestFromPriors(const AskContext& context, const History& history,
                                            std::span<const PriorStudy> priors) {
  const int64_t number = context.number.value;
  if (priors.empty() || number % 2 != 0) return std::nullopt;
  const int64_t num_priors = static_cast<int64_t>(priors.size());
  const PriorStudy& prior = priors[static_cast<size_t>(number / 2 % num_priors)];
  const std::vector<const HistoryTrial*> ranked = BetterHalf(prior);
  const ModelledPart part(context.space);
  constexpr size_t kTurns = 5;  // over which the better half is gone through
  const size_t turn = static_cast<size_t>(number / 2 / num_priors);
  for (size_t i = std::min(turn * ranked.size() / kTurns, ranked.size()); i < ranked.size(); ++i) {
    const ParamMap& params = ranked[i]->params;
    if (!ValidateParams(context.space, params).ok() || Tried(history, part, params)) continue;
    CandidatePool pool(context);
    pool.Add({params});
    if (pool.fitting().empty()) continue;
    return Suggestion{
        .params = params,
        .fit = pool.fitting().front().fit,
        .sampler = absl::StrCat("trial #", ranked[i]->number.value, " of ", prior.name),
        .history_sequence = history.sequence(),
        .score = std::nullopt,
        .reason = "among the better half there, and not yet tried here"};
  }
  return std::nullopt;
}

}  // namespace hpo::sampler
