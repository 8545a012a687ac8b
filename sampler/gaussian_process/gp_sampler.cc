#include "sampler/gaussian_process/gp_sampler.h"

#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sampler/gaussian_process/acquisition_search.h"
#include "sampler/gaussian_process/loss_scale.h"
#include "sampler/gaussian_process/portable_math.h"
#include "sampler/gaussian_process/prior_trend.h"
#include "sampler/gaussian_process/surrogate_cache.h"
#include "sampler/gaussian_process/training_data.h"
#include "sampler/qmc_sampler.h"
#include "sampler/random_sampler.h"
#include "sampler/random_stream.h"

namespace hpo {
namespace {

constexpr char kViolation[] = "the violation of the constraints, which no trial keeps yet,";

PointTable PointsOf(const InputSpace& inputs, std::span<const Codes> configurations) {
  PointTable points(inputs.num_axes());
  for (const Codes& codes : configurations) points.Append(inputs.Point(codes));
  return points;
}

struct QualityModel {
  Posterior posterior;
  std::optional<Trend> trend;  // in the posterior's unit
  double best = 0.0;           // least of what both expect where trials have been
  double log_unit = 0.0;       // of the posterior's unit in deviations of the losses
  double log_evidence = 0.0;   // how probable the fit makes the losses that it is of
};

QualityModel ModelQuality(const InputSpace& inputs, const std::vector<Codes>& fantasies,
                          QualityPoints points, std::optional<Trend> trend, SurrogateCache& cache) {
  double fitted_unit = 1.0;
  double unit = 1.0;
  if (trend.has_value()) {
    fitted_unit = TakeOff(*trend, points.fitted);
    unit = TakeOff(*trend, points.observed);
    trend->weight /= unit;
  }
  for (const Codes& codes : fantasies) points.observed.points.Append(inputs.Point(codes));
  double log_posterior = 0.0;
  Posterior posterior = cache.Get(points.fitted, points.observed, &log_posterior);
  std::vector<double> offsets;
  for (size_t i = 0; trend.has_value() && i < points.observed.points.size(); ++i) {
    offsets.push_back(trend->At(points.observed.points.Point(i), nullptr));
  }
  for (size_t i = 0; i < points.may_be_best.size(); ++i) {
    if (points.may_be_best[i]) continue;
    offsets.resize(points.observed.points.size(), 0.0);
    offsets[i] = std::numeric_limits<double>::infinity();
  }
  const double num_fitted = static_cast<double>(points.fitted.values.size());
  const double best = posterior.LeastMean(offsets);
  return {.posterior = std::move(posterior),
          .trend = std::move(trend),
          .best = best,
          .log_unit = PortableLog(unit),
          .log_evidence = log_posterior - num_fitted * PortableLog(fitted_unit)};
}

// Brings labels to a mean square of 1. Their sign stays.
void Scale(std::vector<double>& labels) {
  double sum = 0.0;
  for (const double label : labels) sum += label * label;
  const double scale = std::sqrt(sum / static_cast<double>(labels.size()));
  if (!(scale > 0.0)) return;
  for (double& label : labels) label /= scale;
}

Posterior LabelPosterior(const InputSpace& inputs, const LabelledCodes& data,
                         SurrogateCache& cache) {
  const std::span<const Codes> judged(data.codes);
  const size_t settled = FitPoint(judged.size());
  LabelledPoints fitted{
      PointsOf(inputs, judged.first(settled)),
      {data.labels.begin(), data.labels.begin() + static_cast<ptrdiff_t>(settled)}};
  LabelledPoints observed{PointsOf(inputs, judged), data.labels};
  Scale(fitted.values);
  Scale(observed.values);
  return cache.Get(fitted, observed);
}

// How far below the mean a lower bound lies, in deviations. Fantasies make the deviation small
// around trials under way, so that many beside call for less.
double DeviationsOfBound(const History& history) {
  constexpr double kHalvedBeside = 8.0;
  const auto num_running = static_cast<double>(NumIn(TrialState::kRunning, history));
  return 1.0 / (1.0 + num_running / kHalvedBeside);
}

// What spoke for a configuration: `gain` is the improvement it is expected to bring, `avoided` what
// each barrier stands before, `deviations` those of a lower bound that chose.
std::string Explain(const AcquisitionParts& parts, double gain, const std::string& metric,
                    const std::vector<std::string>& avoided, std::optional<double> deviations) {
  std::vector<std::string> risks;
  for (size_t i = 0; i < avoided.size(); ++i) {
    risks.push_back(absl::StrFormat("%.3g %% likely not to %s", 100.0 * parts.safe[i], avoided[i]));
  }
  std::string text = absl::StrCat("decided by ", parts.negligible ? "what it avoids" : "quality",
                                  ": expected to improve ", metric);
  // Of losses as far apart as doubles reach the gain has no number.
  if (std::isfinite(gain)) absl::StrAppendFormat(&text, " by %.3g", gain);
  if (deviations.has_value()) {
    absl::StrAppendFormat(&text, "; the best within %.2f deviations of what is expected",
                          *deviations);
  }
  return risks.empty() ? text : absl::StrCat(text, ", ", absl::StrJoin(risks, ", "));
}

}  // namespace

GpSampler::GpSampler(const StudySpec& study, std::vector<PriorStudy> priors)
    : spec_(study.sampler),
      policy_(study.memory.policy),
      metric_(study.objectives.empty() ? "the objective" : study.objectives.front().metric),
      priors_(std::move(priors), study.memory.policy),
      quality_(std::make_unique<SurrogateCache>()),
      memory_(std::make_unique<SurrogateCache>()),
      failure_(std::make_unique<SurrogateCache>()),
      after_prior_(std::make_unique<SurrogateCache>()) {
  for (const MetricConstraint& constraint : study.constraints) {
    constraints_.push_back({constraint, std::make_unique<SurrogateCache>()});
  }
}

GpSampler::~GpSampler() = default;

std::string GpSampler::DescribeSpeaker(const std::optional<Trend>& trend) const {
  if (!trend.has_value()) return "gp";
  return absl::StrCat("gp, ",
                      DescribePrior(priors_.studies()[trend->vote.prior], trend->vote.worth));
}

absl::StatusOr<Suggestion> GpSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < spec_.startup_trials) {
    return SuggestAtStartup(context, history_, spec_, priors_.studies());
  }
  const CodedSpace space(context.space);
  const TrainingData data = CollectTrainingData(history_, space, context.capacity, policy_);
  if (data.losses.empty()) return SuggestAtStartup(context, history_, spec_, priors_.studies());

  const InputSpace quality_inputs(space, ModelView::kQuality);
  QualityPoints points = ChooseQualityPoints(quality_inputs, data);
  const double loss_per_step = points.loss_per_step;
  QualityModel quality = ModelQuality(quality_inputs, data.fantasies, points, {}, *quality_);
  std::optional<Trend> trend =
      ChooseTrend(priors_.Get(quality_inputs, space, context.capacity), points.fitted);
  if (trend.has_value()) {
    QualityModel started = ModelQuality(quality_inputs, data.fantasies, std::move(points),
                                        std::move(trend), *after_prior_);
    if (started.log_evidence > quality.log_evidence) quality = std::move(started);
  }
  const InputSpace label_inputs(space, ModelView::kMemory);
  std::vector<Posterior> labels;
  std::vector<std::string> avoided;
  if (data.memory.any_bad) {
    labels.push_back(LabelPosterior(label_inputs, data.memory, *memory_));
    avoided.push_back("run out of memory");
  }
  if (data.failure.any_bad) {
    labels.push_back(LabelPosterior(label_inputs, data.failure, *failure_));
    avoided.push_back("fail");
  }
  for (size_t i = 0; i < data.constraints.size() && i < constraints_.size(); ++i) {
    if (!data.constraints[i].any_bad) continue;
    labels.push_back(LabelPosterior(label_inputs, data.constraints[i], *constraints_[i].second));
    avoided.push_back(absl::StrCat("miss ", DescribeConstraint(constraints_[i].first)));
  }
  std::vector<Surrogate> barriers;
  for (const Posterior& posterior : labels) {
    barriers.push_back({&label_inputs, &posterior, nullptr});
  }
  const Surrogate expected{&quality_inputs, &quality.posterior,
                           quality.trend.has_value() ? &*quality.trend : nullptr};
  const Acquisition improvement(expected, quality.best, barriers);
  std::optional<double> deviations;
  if (barriers.empty() && space.all_continuous()) deviations = DeviationsOfBound(history_);
  const Acquisition acquisition =
      deviations.has_value() ? Acquisition::OfLowerBound(expected, *deviations) : improvement;
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  std::optional<ScoredCandidate> found =
      MaximizeAcquisition(context, space, acquisition, Incumbents(data), data.tried, rng);
  if (!found.has_value()) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  const AcquisitionParts parts = improvement.PartsOf(*space.Encode(found->candidate.params));
  const bool by_objective = data.meaning == LossMeaning::kObjective;
  const double gain = PortableExp(parts.log_improvement + quality.log_unit) * loss_per_step;
  const double score = deviations.has_value() ? found->score * PortableExp(quality.log_unit)
                                              : found->score + quality.log_unit;
  return Suggestion{
      .params = std::move(found->candidate.params),
      .fit = found->candidate.fit,
      .sampler = DescribeSpeaker(quality.trend),
      .history_sequence = history_.sequence(),
      .score = score,
      .reason = Explain(parts, gain, by_objective ? metric_ : kViolation, avoided, deviations)};
}

}  // namespace hpo
