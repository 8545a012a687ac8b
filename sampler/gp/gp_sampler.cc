#include "sampler/gp/gp_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sampler/gp/acquisition_search.h"
#include "sampler/gp/prior_trend.h"
#include "sampler/gp/quality_points.h"
#include "sampler/gp/surrogate/surrogate_cache.h"
#include "sampler/gp/surrogate/training_data.h"
#include "sampler/gp/trust_region.h"
#include "sampler/numeric/packet_math.h"
#include "sampler/simple/random_sampler.h"
#include "sampler/simple/startup.h"
#include "sampler/space/model_view.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
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
  // What both expect at each observation and then each fantasy; infinite at one that cannot be the
  // best.
  std::vector<double> means;
  double log_unit = 0.0;      // of the posterior's unit in deviations of the losses
  double log_evidence = 0.0;  // how probable the fit makes the losses that it is of

  double best() const { return *std::min_element(means.begin(), means.end()); }
};

QualityModel ModelQuality(const InputSpace& inputs, const std::vector<Codes>& fantasies,
                          QualityPoints points, const HyperparameterPrior& prior,
                          std::optional<Trend> trend, SurrogateCache& cache) {
  double fitted_unit = 1.0;
  double unit = 1.0;
  if (trend.has_value()) {
    fitted_unit = TakeOff(*trend, points.fitted);
    unit = TakeOff(*trend, points.observed);
    trend->weight /= unit;
  }
  for (const Codes& codes : fantasies) points.observed.points.Append(inputs.Point(codes));
  double log_posterior = 0.0;
  Posterior posterior = cache.Get(points.fitted, points.observed, prior, &log_posterior);
  std::vector<double> means = posterior.Means();
  for (size_t i = 0; i < means.size(); ++i) {
    if (trend.has_value()) means[i] += trend->At(points.observed.points.Point(i), nullptr);
    const bool may_be_best = i >= points.may_be_best.size() || points.may_be_best[i];
    if (!may_be_best) means[i] = std::numeric_limits<double>::infinity();
  }
  const double num_fitted = static_cast<double>(points.fitted.values.size());
  return {.posterior = std::move(posterior),
          .trend = std::move(trend),
          .means = std::move(means),
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

// What decided for a configuration: `gain` is the improvement it is expected to bring, `avoided`
// what each barrier is around, `side` that of a box in which it was looked for.
std::string Explain(const AcquisitionParts& parts, double gain, const std::string& metric,
                    const std::vector<std::string>& avoided, std::optional<double> side) {
  std::vector<std::string> risks;
  for (size_t i = 0; i < avoided.size(); ++i) {
    risks.push_back(absl::StrFormat("%.3g %% likely not to %s", 100.0 * parts.safe[i], avoided[i]));
  }
  std::string text = absl::StrCat("decided by ", parts.negligible ? "what it avoids" : "quality",
                                  ": expected to improve ", metric);
  // Of losses as far apart as doubles reach the gain has no number.
  if (std::isfinite(gain)) absl::StrAppendFormat(&text, " by %.3g", gain);
  if (side.has_value()) {
    absl::StrAppendFormat(&text, "; in a box around the best, %.3g %% of each range wide",
                          100.0 * *side);
  }
  return risks.empty() ? text : absl::StrCat(text, ", ", absl::StrJoin(risks, ", "));
}

// Every second trial.
bool LooksClosely(TrialNumber number) { return number.value % 2 == 1; }

}  // namespace

struct GpSampler::QualityCaches {
  SurrogateCache process;
  SurrogateCache after_prior;  // of what is left of the losses when a prior's say is taken off
};

struct GpSampler::Barriers {
  std::vector<Posterior> labels;
  std::vector<std::string> avoided;  // what each is around
};

GpSampler::GpSampler(const StudySpec& study, std::vector<PriorStudy> priors)
    : spec_(study.sampler),
      policy_(study.memory.policy),
      metric_(study.objectives.empty() ? "the objective" : study.objectives.front().metric),
      priors_(std::move(priors), study.memory.policy),
      everywhere_(std::make_unique<QualityCaches>()),
      in_box_(std::make_unique<QualityCaches>()),
      memory_(std::make_unique<SurrogateCache>()),
      failure_(std::make_unique<SurrogateCache>()) {
  for (const MetricConstraint& constraint : study.constraints) {
    constraints_.push_back({constraint, std::make_unique<SurrogateCache>()});
  }
}

GpSampler::~GpSampler() = default;

std::string GpSampler::DescribeProposer(const std::optional<Trend>& trend) const {
  if (!trend.has_value()) return "gp";
  return absl::StrCat("gp, ",
                      DescribePrior(priors_.studies()[trend->vote.prior], trend->vote.worth));
}

GpSampler::Barriers GpSampler::FindBarriers(const InputSpace& inputs,
                                            const TrainingData& data) const {
  Barriers barriers;
  const auto add = [&](const LabelledCodes& labelled, SurrogateCache& cache, std::string what) {
    if (!labelled.any_bad) return;
    barriers.labels.push_back(LabelPosterior(inputs, labelled, cache));
    barriers.avoided.push_back(std::move(what));
  };
  add(data.memory, *memory_, "run out of memory");
  add(data.failure, *failure_, "fail");
  for (size_t i = 0; i < data.constraints.size() && i < constraints_.size(); ++i) {
    const auto& [constraint, cache] = constraints_[i];
    add(data.constraints[i], *cache, absl::StrCat("miss ", DescribeConstraint(constraint)));
  }
  return barriers;
}

absl::StatusOr<Suggestion> GpSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < StartupTrials(spec_, context)) {
    return SuggestAtStartup(context, history_, spec_, priors_.studies());
  }
  const CodedSpace space(context.space);
  const TrainingData data = CollectTrainingData(history_, space, context.capacity, policy_);
  if (data.losses.empty()) return SuggestAtStartup(context, history_, spec_, priors_.studies());

  const InputSpace inputs(space, ModelView::kQuality);
  const auto earlier = priors_.Get(inputs, space, context.capacity);
  const auto model = [&](const QualityPoints& points, const HyperparameterPrior& prior,
                         QualityCaches& caches) {
    QualityModel alone =
        ModelQuality(inputs, data.fantasies, points, prior, std::nullopt, caches.process);
    std::optional<Trend> trend = ChooseTrend(earlier, points.fitted);
    if (!trend.has_value()) return alone;
    QualityModel started =
        ModelQuality(inputs, data.fantasies, points, prior, std::move(trend), caches.after_prior);
    return started.log_evidence > alone.log_evidence ? started : alone;
  };
  QualityPoints points = ChooseQualityPoints(inputs, data);
  QualityModel quality = model(points, AdditivePrior(), *everywhere_);
  std::optional<SearchBox> box;
  if (LooksClosely(context.number)) {
    const std::span<const double> means(quality.means.data(), points.trials.size());
    const TrustRegion region =
        FindTrustRegion(points.observed.points, means, data.fantasies.size());
    box = SearchBox{data.observed[points.trials[region.center]], region.side};
    points = PointsNear(region, data, points);
    quality = model(points, PriorWithin(region.side), *in_box_);
  }

  const InputSpace label_inputs(space, ModelView::kMemory);
  const Barriers barriers = FindBarriers(label_inputs, data);
  std::vector<Surrogate> avoided;
  for (const Posterior& posterior : barriers.labels) {
    avoided.push_back({&label_inputs, &posterior, nullptr});
  }
  const Surrogate expected{&inputs, &quality.posterior,
                           quality.trend.has_value() ? &*quality.trend : nullptr};
  const Acquisition acquisition(expected, quality.best(), std::move(avoided));
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  std::optional<ScoredCandidate> found =
      MaximizeAcquisition(context, space, acquisition, Incumbents(data), data.tried, rng,
                          box.has_value() ? &*box : nullptr);
  if (!found.has_value()) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  const AcquisitionParts parts = acquisition.PartsOf(*space.Encode(found->candidate.params));
  const bool by_objective = data.meaning == LossMeaning::kObjective;
  const double gain = PortableExp(parts.log_improvement + quality.log_unit) * points.loss_per_step;
  return Suggestion{
      .params = std::move(found->candidate.params),
      .fit = found->candidate.fit,
      .sampler = DescribeProposer(quality.trend),
      .history_sequence = history_.sequence(),
      .score = found->score + quality.log_unit,
      .reason = Explain(parts, gain, by_objective ? metric_ : kViolation, barriers.avoided,
                        box.has_value() ? std::optional(box->side) : std::nullopt)};
}

}  // namespace hpo::sampler
