#include "sampler/simple/grid_sampler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/coded_space.h"
#include "sampler/space/grid_walk.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/random_stream.h"
#include "sampler/space/tried_cells.h"

namespace hpo::sampler {
namespace {

// How many that are left are checked at once, and in all, before the draw at random.
constexpr size_t kBatch = 64;
constexpr size_t kMostChecked = 4096;
constexpr char kTooBig[] = " that do not fit this worker";

// The next configurations that no trial has had, at most `count`.
std::vector<ParamMap> NextUntried(const CodedSpace& space, const TriedCells& tried, size_t count,
                                  GridWalk& walk, Rng& rng) {
  std::vector<ParamMap> found;
  while (found.size() < count && walk.Next()) {
    Codes codes = walk.codes();
    if (tried.Contains(codes) || !space.Complete(codes, rng)) continue;
    if (auto params = space.Decode(codes); params.has_value()) found.push_back(*std::move(params));
  }
  return found;
}

// One at random that fits and that no trial has had; nullopt where some draws found none.
std::optional<Candidate> DrawUntried(const AskContext& context, const CodedSpace& space,
                                     const TriedCells& tried, Rng& rng) {
  constexpr int kDraws = 16;
  for (int i = 0; i < kDraws; ++i) {
    absl::StatusOr<Candidate> drawn = DrawFitting(context, {}, rng);
    if (!drawn.ok()) return std::nullopt;
    if (!tried.Contains(*space.Encode(drawn->params))) return *std::move(drawn);
  }
  return std::nullopt;
}

}  // namespace

bool GridIsUsedUp(const History& history, const SearchSpace& space) {
  const CodedSpace coded(space);
  const TriedCells tried(coded, history);
  GridWalk walk(coded);
  bool any = false;
  for (; walk.Next(); any = true) {
    if (!tried.Contains(walk.codes())) return false;
  }
  return any;
}

absl::StatusOr<Suggestion> GridSampler::Suggest(const AskContext& context) const {
  const CodedSpace space(context.space);
  const TriedCells tried(space, history_);
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kRandomConfiguration);
  const auto propose = [this](const Candidate& candidate, const std::string& where) {
    return Suggestion{.params = candidate.params,
                      .fit = candidate.fit,
                      .sampler = absl::StrCat("grid", where),
                      .history_sequence = history_.sequence(),
                      .score = std::nullopt,
                      .reason = "the next of the grid that no trial has had"};
  };
  GridWalk walk(space);
  CandidatePool pool(context);
  size_t num_passed = 0;
  while (num_passed < kMostChecked) {
    const std::vector<ParamMap> batch =
        NextUntried(space, tried, num_passed == 0 ? 1 : kBatch - num_passed % kBatch, walk, rng);
    if (batch.empty()) break;
    pool.Add(batch);
    if (!pool.fitting().empty()) {
      const Candidate& next = pool.fitting().front();
      num_passed +=
          static_cast<size_t>(std::find(batch.begin(), batch.end(), next.params) - batch.begin());
      return propose(next, num_passed == 0 ? "" : absl::StrCat(", past ", num_passed, kTooBig));
    }
    num_passed += batch.size();
  }
  if (num_passed == 0) {
    if (!GridWalk(space).Next()) return DrawConfiguration(context.space, {}, rng).status();
    return absl::OutOfRangeError("nothing is left of the grid that this worker could run");
  }
  const auto drawn = DrawUntried(context, space, tried, rng);
  if (drawn.has_value())
    return propose(*drawn, absl::StrCat(" at random, past ", num_passed, kTooBig));
  return NoneFits(*pool.nearest_miss(), context.capacity);
}

}  // namespace hpo::sampler
