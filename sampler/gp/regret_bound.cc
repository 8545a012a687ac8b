#include "sampler/gp/regret_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "sampler/gp/acquisition_search.h"
#include "sampler/gp/surrogate/hyperparameters.h"
#include "sampler/gp/surrogate/loss_scale.h"
#include "sampler/gp/surrogate/surrogate_cache.h"
#include "sampler/gp/surrogate/training_data.h"
#include "sampler/numeric/packet_math.h"
#include "sampler/space/model_view.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
namespace {

constexpr size_t kLeastTrials = 20;
constexpr size_t kMostTrials = 256;
// Of the deviation of the losses so scaled: what nobody tells apart.
constexpr double kNegligible = 0.01;

// The square root of b.
double Deviations(size_t num_axes, size_t num_trials) {
  constexpr double kPiSquared = 9.869604401089358;
  constexpr double kDoubt = 0.1;
  const double trials = static_cast<double>(num_trials);
  const double axes = static_cast<double>(std::max<size_t>(num_axes, 1));
  return std::sqrt(0.4 * PortableLog(axes * trials * trials * kPiSquared / (6.0 * kDoubt)));
}

double LeastUpperBound(const Posterior& posterior, const PointTable& points, double deviations) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < points.size(); ++i) {
    const Prediction at = posterior.Predict(points.Point(i), nullptr);
    least = std::min(least, at.mean + deviations * at.deviation);
  }
  return least;
}

}  // namespace

std::optional<RegretEstimate> EstimateRegret(const History& history, const StudySpec& study) {
  // What has run once can run: no capacity leaves anything out.
  constexpr Bytes kAnyCapacity{std::numeric_limits<int64_t>::max()};
  const CodedSpace space(study.space);
  const InputSpace inputs(space, ModelView::kQuality);
  const TrainingData data = CollectTrainingData(history, space, kAnyCapacity, study.memory.policy);
  if (data.losses.size() < kLeastTrials) return std::nullopt;
  std::vector<size_t> order = OrderByLoss(data.losses);
  order.resize(std::min(order.size(), kMostTrials));
  LabelledPoints observed{PointTable(inputs.num_axes()), {}};
  std::vector<double> losses;
  for (const size_t i : order) {
    observed.points.Append(inputs.Point(data.observed[i]));
    losses.push_back(data.losses[i]);
  }
  if (losses.front() == losses.back()) return std::nullopt;
  observed.values = NormalizeLosses(losses, StartingReference(data.losses));
  const double unit = LossPerStep(losses, observed.values);

  const Posterior posterior = SurrogateCache().Get(observed, observed);
  const double deviations = Deviations(inputs.num_axes(), data.losses.size());
  const AskContext context{.number = TrialNumber{static_cast<int64_t>(data.losses.size())},
                           .space = study.space,
                           .capacity = kAnyCapacity,
                           .feasibility = {}};
  Rng rng = StreamFor(study.sampler.seed, context.number, StreamPurpose::kCandidates);
  const Acquisition lower_bound =
      Acquisition::OfLowerBound({&inputs, &posterior, nullptr}, deviations);
  const std::optional<ScoredCandidate> lowest =
      MaximizeAcquisition(context, space, lower_bound, Incumbents(data), {}, rng);
  if (!lowest.has_value()) return std::nullopt;
  const double gap = LeastUpperBound(posterior, observed.points, deviations) + lowest->score;
  const double noise = std::max(std::sqrt(posterior.kernel().noise), kNegligible);
  return RegretEstimate{gap * unit, noise * unit};
}

std::optional<std::string> WhyRegretBounded(const History& history, const StudySpec& study) {
  if (!study.budget.regret_bound.has_value()) return std::nullopt;
  const std::optional<RegretEstimate> regret = EstimateRegret(history, study);
  if (!regret.has_value()) return std::nullopt;
  const std::optional<double> gap = study.budget.regret_bound->gap;
  const double allowed = gap.value_or(regret->noise);
  if (regret->gap > allowed) return std::nullopt;
  return absl::StrFormat(
      "after %d trials the model expects nothing better than the best by more than %.3g (%s %.3g); "
      "to go on, lower budget.regret_bound in its file",
      history.num_finished(), regret->gap, gap.has_value() ? "budget.regret_bound" : "noise",
      allowed);
}

}  // namespace hpo::sampler
