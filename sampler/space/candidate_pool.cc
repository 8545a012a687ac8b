#include "sampler/space/candidate_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "sampler/space/cheapest_configuration.h"
#include "sampler/space/modelled_part.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/tried_cells.h"

namespace hpo::sampler {
namespace {

// Sizes of the rounds of random draws: most spaces fit at once, few need hundreds of draws.
constexpr int kPoolRounds[] = {1, 8, 64, 128, 256};
constexpr size_t kMostUntried = 192;

// Adds rounds of random draws until one fits.
absl::Status DrawRounds(const AskContext& context, const ParamMap& preset, Rng& rng,
                        CandidatePool& pool) {
  for (const int size : kPoolRounds) {
    std::vector<ParamMap> drawn;
    for (int i = 0; i < size; ++i) {
      HPO_ASSIGN_OR_RETURN(ParamMap params, DrawConfiguration(context.space, preset, rng));
      drawn.push_back(std::move(params));
    }
    pool.Add(std::move(drawn));
    if (!pool.fitting().empty()) break;
  }
  return absl::OkStatus();
}

}  // namespace

void CandidatePool::Add(std::vector<ParamMap> drawn) {
  std::vector<memory::Fit> fits(drawn.size());
  if (context_.feasibility && !drawn.empty()) fits = context_.feasibility(drawn);
  HPO_CHECK(fits.size() == drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    Candidate candidate{std::move(drawn[i]), fits[i]};
    if (candidate.fit.fits) {
      fitting_.push_back(std::move(candidate));
    } else if (!nearest_miss_.has_value() || candidate.fit.needed < nearest_miss_->fit.needed) {
      nearest_miss_ = std::move(candidate);
    }
  }
}

std::optional<Candidate> DrawUntilNew(std::span<const int> rounds, const History& history,
                                      absl::FunctionRef<absl::StatusOr<ParamMap>()> draw, Rng& rng,
                                      CandidatePool& pool) {
  const ModelledPart part(pool.context().space);
  size_t seen = pool.fitting().size();
  const auto first_new = [&]() -> std::optional<Candidate> {
    for (; seen < pool.fitting().size(); ++seen) {
      const Candidate& candidate = pool.fitting()[seen];
      if (!Tried(history, part, candidate.params)) return candidate;
    }
    return std::nullopt;
  };
  for (const int size : rounds) {
    std::vector<ParamMap> drawn;
    for (int i = 0; i < size; ++i) {
      auto params = draw();
      if (params.ok()) drawn.push_back(*std::move(params));
    }
    pool.Add(std::move(drawn));
    if (auto found = first_new(); found.has_value()) return found;
  }
  if (!AddUntried(history, rng, pool)) return std::nullopt;
  if (auto found = first_new(); found.has_value()) return found;
  if (!part.leaves_out() || pool.fitting().empty()) return std::nullopt;
  return pool.fitting().front();
}

bool AddUntried(const History& history, Rng& rng, CandidatePool& pool) {
  const CodedSpace space(pool.context().space);
  const auto left = UntriedOf(space, TriedCells(space, history), kMostUntried, rng);
  if (!left.has_value()) return false;
  std::vector<ParamMap> configurations;
  for (const Codes& codes : *left) {
    if (auto params = space.Decode(codes); params.has_value()) {
      configurations.push_back(*std::move(params));
    }
  }
  pool.Add(std::move(configurations));
  return true;
}

absl::Status NoneFits(const Candidate& nearest_miss, Bytes capacity) {
  return absl::FailedPreconditionError(
      absl::StrCat("no configuration found that fits a capacity of ", FormatBytes(capacity),
                   ": the least demanding needs ", FormatBytes(nearest_miss.fit.needed), " (",
                   FormatParams(nearest_miss.params), ")"));
}

absl::StatusOr<Candidate> DrawFitting(const AskContext& context, const ParamMap& preset, Rng& rng) {
  CandidatePool pool(context);
  HPO_RETURN_IF_ERROR(DrawRounds(context, preset, rng, pool));
  if (pool.fitting().empty() && !preset.empty()) {
    HPO_RETURN_IF_ERROR(DrawRounds(context, {}, rng, pool));
  }
  if (!pool.fitting().empty()) return pool.fitting().front();
  Candidate cheapest = FindCheapest(context, *pool.nearest_miss(), CheapestGoal::kFirstThatFits);
  if (!cheapest.fit.fits) return NoneFits(cheapest, context.capacity);
  return cheapest;
}

}  // namespace hpo::sampler
