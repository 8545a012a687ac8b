// Tested by tests/sampler/gp/acquisition_test.cc.
#include "sampler/gp/acquisition_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/numeric/lbfgs_b.h"
#include "sampler/space/modelled_part.h"
#include "sampler/space/tried_cells.h"

namespace hpo::sampler {
namespace {

constexpr size_t kRandomCandidates = 192;
constexpr size_t kLocalCandidates = 128;
constexpr size_t kStarts = 4;
// How many candidates are checked against the worker's memory at a time, the best first.
constexpr size_t kFeasibilityBatch = 8;
constexpr int kClimbRounds = 4;
// All values of a grid are tried up to this many, else steps of 1, 2, 4, ... and back.
constexpr double kMostTried = 12.0;
constexpr double kLeastScoreGain = 1e-9;
struct Scored {
  Codes codes;
  double score = 0.0;
};

class Search {
 public:
  Search(const AskContext& context, const CodedSpace& space, const Acquisition& acquisition,
         const std::vector<Codes>& tried, Rng& rng, const SearchBox* box)
      : context_(context),
        space_(space),
        acquisition_(acquisition),
        tried_(space, tried),
        rng_(rng),
        region_(space, box) {}

  std::optional<ScoredCandidate> Run(const std::vector<Codes>& incumbents) {
    std::optional<ScoredCandidate> best;
    for (Scored& start : FindStarts(incumbents)) {
      const double score = Climb(start);
      if (best.has_value() && !(score > best->score)) continue;
      if (auto candidate = Check(start.codes); candidate.has_value()) {
        best = ScoredCandidate{*std::move(candidate), score};
      }
    }
    return best;
  }

 private:
  std::vector<Scored> DrawCandidates(const std::vector<Codes>& incumbents) {
    std::vector<Codes> drawn;
    const auto add = [&](Codes codes) {
      if (space_.Complete(codes, rng_) && !tried_.Contains(codes)) {
        drawn.push_back(std::move(codes));
      }
    };
    for (size_t i = 0; i < kRandomCandidates; ++i) add(region_.Draw(rng_));
    const std::vector<Codes> centers =
        region_.box() != nullptr ? std::vector<Codes>{region_.box()->center} : incumbents;
    for (size_t i = 0; i < kLocalCandidates && !centers.empty(); ++i) {
      add(region_.Near(centers[i % centers.size()], rng_));
    }
    return ScoreAll(std::move(drawn));
  }

  std::vector<Scored> ScoreAll(std::vector<Codes> all) const {
    const std::vector<double> scores = acquisition_.Scores(all);
    std::vector<Scored> scored;
    for (size_t i = 0; i < all.size(); ++i) scored.push_back({std::move(all[i]), scores[i]});
    return scored;
  }

  // Where no candidate is new, from what is left of a small space; where nothing is left of it,
  // what was tried may be so again with other values of what is not modelled.
  std::vector<Scored> FindStarts(const std::vector<Codes>& incumbents) {
    const SearchRegion region = region_;
    std::vector<Scored> starts = DrawFitting(incumbents);
    if (!starts.empty()) return starts;
    auto left = UntriedOf(space_, tried_, kRandomCandidates, rng_);
    if (!left.has_value()) return starts;
    starts = KeepFitting(ScoreAll(*std::move(left)));
    if (!starts.empty() || !ModelledPart(space_.space()).leaves_out()) return starts;
    tried_ = TriedCells(space_, std::vector<Codes>());
    region_ = region;
    return DrawFitting(incumbents);
  }

  // From the box; where no candidate there is new and fits, from everywhere, and there is no box
  // any more.
  std::vector<Scored> DrawFitting(const std::vector<Codes>& incumbents) {
    std::vector<Scored> starts = KeepFitting(DrawCandidates(incumbents));
    if (!starts.empty() || region_.box() == nullptr) return starts;
    region_ = SearchRegion(space_, nullptr);
    return KeepFitting(DrawCandidates(incumbents));
  }

  // The best few that fit.
  std::vector<Scored> KeepFitting(std::vector<Scored> sorted) {
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
    std::vector<Scored> starts;
    for (size_t i = 0; i < sorted.size() && starts.size() < kStarts; i += kFeasibilityBatch) {
      const size_t end = std::min(i + kFeasibilityBatch, sorted.size());
      std::vector<ParamMap> params;
      std::vector<size_t> indices;
      for (size_t j = i; j < end; ++j) {
        std::optional<ParamMap> decoded = space_.Decode(sorted[j].codes);
        if (!decoded.has_value()) continue;
        params.push_back(*std::move(decoded));
        indices.push_back(j);
      }
      std::vector<memory::Fit> fits(params.size());
      if (context_.feasibility && !params.empty()) fits = context_.feasibility(params);
      for (size_t j = 0; j < indices.size() && starts.size() < kStarts; ++j) {
        if (fits[j].fits) starts.push_back(std::move(sorted[indices[j]]));
      }
    }
    return starts;
  }

  // The configuration of `codes` if it is valid and fits.
  std::optional<Candidate> Check(const Codes& codes) const {
    std::optional<ParamMap> params = space_.Decode(codes);
    if (!params.has_value()) return std::nullopt;
    CandidatePool pool(context_);
    pool.Add({*std::move(params)});
    if (pool.fitting().empty()) return std::nullopt;
    return pool.fitting().front();
  }

  // Moves `at` to a local maximum; its score.
  double Climb(Scored& at) {
    for (int round = 0; round < kClimbRounds; ++round) {
      const double before = at.score;
      ClimbContinuous(at);
      const bool stepped = StepOverValues(at);
      if (!stepped || at.score - before <= kLeastScoreGain) break;
    }
    return at.score;
  }

  void ClimbContinuous(Scored& at) {
    std::vector<size_t> parameters;
    std::vector<double> start, lower, upper;
    for (size_t i = 0; i < space_.size(); ++i) {
      const bool continuous = space_.kind(i) == CodedSpace::Kind::kContinuous;
      if (!continuous || !space_.space().parameters[i].modelled) continue;
      if (std::isnan(at.codes[i]) || space_.constant(i)) continue;
      const std::optional<AllowedCodes> allowed = region_.Allowed(i, at.codes);
      parameters.push_back(i);
      start.push_back(at.codes[i]);
      lower.push_back(allowed->low);
      upper.push_back(allowed->high);
    }
    if (parameters.empty()) return;
    Codes codes = at.codes;
    const SmoothFunction loss = [&](std::span<const double> x, std::span<double> gradient) {
      for (size_t i = 0; i < parameters.size(); ++i) codes[parameters[i]] = x[i];
      const double score = acquisition_.Score(codes, parameters, gradient);
      for (double& entry : gradient) entry = -entry;
      return -score;
    };
    const LbfgsBOptions options{.max_iterations = 30,
                                .max_evaluations = 40,
                                .gradient_tolerance = 1e-4,
                                .value_tolerance = 1e-7};
    const LbfgsBResult found = MinimizeInBox(loss, start, lower, upper, options);
    for (size_t i = 0; i < parameters.size(); ++i) codes[parameters[i]] = found.x[i];
    if (-found.value <= at.score || tried_.Contains(codes)) return;
    if (context_.feasibility && !Check(codes).has_value()) return;
    at = {std::move(codes), -found.value};
  }

  // For each parameter in turn the best other value. Whether any was better.
  bool StepOverValues(Scored& at) {
    bool stepped = false;
    for (size_t i = 0; i < space_.size(); ++i) {
      const bool continuous = space_.kind(i) == CodedSpace::Kind::kContinuous;
      if (continuous || std::isnan(at.codes[i]) || !space_.space().parameters[i].modelled) continue;
      if (space_.constant(i)) continue;
      std::optional<Scored> best = BestOtherValue(at, i);
      if (!best.has_value() || best->score <= at.score + kLeastScoreGain) continue;
      if (context_.feasibility && !Check(best->codes).has_value()) continue;
      at = *std::move(best);
      stepped = true;
    }
    return stepped;
  }

  std::optional<Scored> BestOtherValue(const Scored& at, size_t parameter) {
    std::vector<Codes> others;
    for (const double code : OtherValues(parameter, at.codes)) {
      Codes codes = at.codes;
      codes[parameter] = code;
      if (!space_.Complete(codes, rng_) || tried_.Contains(codes)) continue;
      others.push_back(std::move(codes));
    }
    std::vector<Scored> scored = ScoreAll(std::move(others));
    const auto best =
        std::max_element(scored.begin(), scored.end(),
                         [](const Scored& a, const Scored& b) { return a.score < b.score; });
    if (best == scored.end()) return std::nullopt;
    return std::move(*best);
  }

  std::vector<double> OtherValues(size_t parameter, const Codes& codes) const {
    const AllowedCodes allowed = *region_.Allowed(parameter, codes);
    std::vector<double> values = allowed.choices;
    const double now = codes[parameter];
    if (values.empty() && allowed.high - allowed.low < kMostTried) {
      for (double code = allowed.low; code <= allowed.high; code += 1.0) values.push_back(code);
    } else if (values.empty()) {
      for (double step = 1.0; step <= allowed.high - allowed.low; step *= 2.0) {
        if (now - step >= allowed.low) values.push_back(now - step);
        if (now + step <= allowed.high) values.push_back(now + step);
      }
    }
    std::erase(values, now);
    return values;
  }

  const AskContext& context_;
  const CodedSpace& space_;
  const Acquisition& acquisition_;
  TriedCells tried_;
  Rng& rng_;
  SearchRegion region_;
};

}  // namespace

std::optional<ScoredCandidate> MaximizeAcquisition(const AskContext& context,
                                                   const CodedSpace& space,
                                                   const Acquisition& acquisition,
                                                   const std::vector<Codes>& incumbents,
                                                   const std::vector<Codes>& tried, Rng& rng,
                                                   const SearchBox* box) {
  return Search(context, space, acquisition, tried, rng, box).Run(incumbents);
}

}  // namespace hpo::sampler
