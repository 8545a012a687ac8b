#include "sampler/space/finite_space.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/coded_space.h"
#include "sampler/space/grid_walk.h"
#include "sampler/space/modelled_part.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/random_stream.h"
#include "sampler/space/tried_cells.h"

namespace hpo::sampler {
namespace {

// Random draws before what is left of a small space is listed.
constexpr int kRoundsOfDraws[] = {8, 64};
constexpr size_t kFitBatch = 64;
constexpr size_t kMostListed = 4096;  // as UntriedOf

bool IsContinuous(const CodedSpace& space, size_t parameter) {
  return space.kind(parameter) == CodedSpace::Kind::kContinuous && !space.constant(parameter);
}

// Whether a configuration can hardly be drawn twice.
bool IsContinuous(const CodedSpace& space) {
  for (size_t i = 0; i < space.size(); ++i) {
    const Parameter& parameter = space.space().parameters[i];
    if (parameter.modelled && parameter.when.empty() && IsContinuous(space, i)) return true;
  }
  return false;
}

bool IsFinite(const CodedSpace& space) {
  for (size_t i = 0; i < space.size(); ++i) {
    if (IsContinuous(space, i)) return false;
  }
  return true;
}

// At most the number of configurations: of the parameters that always exist with their full domain.
double FewestConfigurations(const CodedSpace& space) {
  const SearchSpace& whole = space.space();
  double fewest = 1.0;
  for (size_t i = 0; i < space.size(); ++i) {
    const Parameter& parameter = whole.parameters[i];
    const bool narrowed = std::any_of(whole.narrowings.begin(), whole.narrowings.end(),
                                      [&](const auto& one) { return one.name == parameter.name; });
    if (!parameter.when.empty() || narrowed) continue;
    const auto allowed = space.Allowed(i, Codes(space.size(), 0.0));
    if (allowed.has_value()) fewest *= allowed->high - allowed->low + 1.0;
  }
  return fewest;
}

// The first of the configurations that fits; nullopt where none does.
std::optional<Candidate> FindFitting(const AskContext& context, const CodedSpace& space,
                                     const std::vector<Codes>& configurations) {
  for (size_t i = 0; i < configurations.size(); i += kFitBatch) {
    std::vector<ParamMap> batch;
    for (const Codes& codes :
         std::span(configurations).subspan(i, std::min(kFitBatch, configurations.size() - i))) {
      if (auto params = space.Decode(codes); params.has_value())
        batch.push_back(*std::move(params));
    }
    CandidatePool pool(context);
    pool.Add(std::move(batch));
    if (!pool.fitting().empty()) return pool.fitting().front();
  }
  return std::nullopt;
}

// The configurations that are used up.
TriedCells UsedUp(const CodedSpace& space, const History& history) {
  constexpr int kMostInVain = 2;
  std::map<ParamMap, int> in_vain;
  std::vector<Codes> used_up;
  for (const auto& [number, trial] : history.trials()) {
    const bool ended = IsFinished(trial) || trial.state == TrialState::kFailed ||
                       trial.state == TrialState::kCancelled;
    const bool judged = !ended || (IsFinished(trial) && !EndedByMemory(trial));
    if (!judged && ++in_vain[trial.params] < kMostInVain) continue;
    if (auto codes = space.Encode(trial.params); codes.has_value()) {
      used_up.push_back(*std::move(codes));
    }
  }
  return TriedCells(space, used_up);
}

Suggestion Instead(Suggestion suggestion, Candidate candidate) {
  suggestion.params = std::move(candidate.params);
  suggestion.fit = candidate.fit;
  suggestion.score = std::nullopt;
  suggestion.reason = "one at random, as what the sampler proposed had been tried";
  return suggestion;
}

}  // namespace

bool SpaceIsUsedUp(const History& history, const SearchSpace& space) {
  if (space.parameters.empty()) return false;
  const CodedSpace coded(space);
  const ModelledPart part(space);
  const auto num_trials = static_cast<double>(history.trials().size());
  if (part.leaves_out() || !IsFinite(coded) || num_trials < FewestConfigurations(coded)) {
    return false;
  }
  const TriedCells used_up = UsedUp(coded, history);
  GridWalk walk(coded);
  bool any = false;
  for (; walk.Next(); any = true) {
    if (!used_up.Contains(walk.codes())) return false;
  }
  return any;
}

bool CanRepeat(const SearchSpace& space) { return !IsContinuous(CodedSpace(space)); }

void WithoutRepetition::Observe(const HistoryEvent& event) {
  history_.Apply({.sequence = event.sequence,
                  .trial = {.number = event.trial.number,
                            .params = event.trial.params,
                            .state = event.trial.state,
                            .prune_reason = event.trial.prune_reason}});
  proposer_->Observe(event);
}

absl::StatusOr<Suggestion> WithoutRepetition::Suggest(const AskContext& context) const {
  HPO_ASSIGN_OR_RETURN(Suggestion suggestion, proposer_->Suggest(context));
  const CodedSpace space(context.space);
  const ModelledPart part(context.space);
  if (context.repetition == Repetition::kAlways || IsContinuous(space) ||
      !Tried(history_, part, suggestion.params)) {
    return suggestion;
  }
  Rng rng = StreamFor(seed_, context.number, StreamPurpose::kUntried);
  const auto draw = [&] { return DrawConfiguration(context.space, {}, rng); };
  CandidatePool pool(context);
  std::optional<Candidate> found = DrawUntilNew(kRoundsOfDraws, history_, draw, rng, pool);
  if (found.has_value() && !Tried(history_, part, found->params)) {
    return Instead(std::move(suggestion), *std::move(found));
  }
  const auto left = UntriedOf(space, TriedCells(space, history_), kMostListed, rng);
  if (!left.has_value()) return suggestion;
  found = FindFitting(context, space, *left);
  if (found.has_value()) return Instead(std::move(suggestion), *std::move(found));
  if (part.leaves_out()) return suggestion;
  const auto not_used_up = UntriedOf(space, UsedUp(space, history_), kMostListed, rng);
  found = FindFitting(context, space, *not_used_up);
  if (found.has_value()) return Instead(std::move(suggestion), *std::move(found));
  suggestion.all_tried = context.repetition == Repetition::kWhereAllTried;
  if (suggestion.all_tried) return suggestion;
  return absl::OutOfRangeError(absl::StrCat(
      "every configuration that fits this worker has been tried",
      not_used_up->empty()
          ? ""
          : absl::StrCat("; more memory would allow ", not_used_up->size(), " more of the space")));
}

}  // namespace hpo::sampler
