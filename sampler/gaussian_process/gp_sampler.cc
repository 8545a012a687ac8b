#include "sampler/gaussian_process/gp_sampler.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "sampler/gaussian_process/acquisition_search.h"
#include "sampler/gaussian_process/loss_scale.h"
#include "sampler/gaussian_process/surrogate_cache.h"
#include "sampler/gaussian_process/training_data.h"
#include "sampler/qmc_sampler.h"
#include "sampler/random_sampler.h"
#include "sampler/random_stream.h"

namespace hpo {
namespace {

// The cost of a model grows with the third power of its trials, and fitting repeats it often.
constexpr size_t kMostObservations = 512;
constexpr size_t kMostFitted = 256;
// Of the observed trials, how many local candidates lie around.
constexpr size_t kIncumbents = 6;

PointTable PointsOf(const InputSpace& inputs, std::span<const Codes> configurations) {
  PointTable points(inputs.num_axes());
  for (const Codes& codes : configurations) points.Append(inputs.Point(codes));
  return points;
}

std::vector<double> ValuesAt(std::span<const double> values, std::span<const size_t> indices) {
  std::vector<double> result;
  for (const size_t i : indices) result.push_back(values[i]);
  return result;
}

LabelledPoints Select(const InputSpace& inputs, const TrainingData& data,
                      const std::vector<size_t>& indices) {
  LabelledPoints result{PointTable(inputs.num_axes()), {}};
  for (const size_t i : indices) result.points.Append(inputs.Point(data.observed[i]));
  result.values = NormalizeLosses(ValuesAt(data.losses, indices));
  return result;
}

Posterior QualityPosterior(const InputSpace& inputs, const TrainingData& data,
                           SurrogateCache& cache) {
  const size_t count = data.losses.size();
  const std::span<const double> settled(data.losses.data(), FitPoint(count));
  std::vector<size_t> kept = SelectObservations(settled, kMostObservations);
  for (size_t i = settled.size(); i < count; ++i) kept.push_back(i);
  LabelledPoints observed = Select(inputs, data, kept);
  for (const Codes& codes : data.fantasies) observed.points.Append(inputs.Point(codes));
  return cache.Get(Select(inputs, data, SelectObservations(settled, kMostFitted)), observed);
}

Posterior LabelPosterior(const InputSpace& inputs, const LabelledCodes& data,
                         SurrogateCache& cache) {
  const std::span<const Codes> judged(data.codes);
  const size_t settled = FitPoint(judged.size());
  const LabelledPoints fitted{
      PointsOf(inputs, judged.first(settled)),
      {data.labels.begin(), data.labels.begin() + static_cast<ptrdiff_t>(settled)}};
  return cache.Get(fitted, {PointsOf(inputs, judged), data.labels});
}

// The best observed configurations, the best first; the older of equals.
std::vector<Codes> Incumbents(const TrainingData& data) {
  std::vector<size_t> order(data.losses.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return data.losses[a] < data.losses[b]; });
  order.resize(std::min(order.size(), kIncumbents));
  std::vector<Codes> incumbents;
  for (const size_t i : order) incumbents.push_back(data.observed[i]);
  return incumbents;
}

}  // namespace

size_t FitPoint(size_t count) {
  constexpr size_t kAlwaysUpTo = 32;
  if (count <= kAlwaysUpTo) return count;
  const size_t interval = std::bit_floor(count / 16);
  return count / interval * interval;
}

GpSampler::GpSampler(const SamplerSpec& spec, MemoryPolicy policy)
    : spec_(spec),
      policy_(policy),
      quality_(std::make_unique<SurrogateCache>()),
      memory_(std::make_unique<SurrogateCache>()),
      failure_(std::make_unique<SurrogateCache>()) {}

GpSampler::~GpSampler() = default;

absl::StatusOr<Suggestion> GpSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < spec_.startup_trials) {
    return SuggestAtStartup(context, history_, spec_);
  }
  const CodedSpace space(context.space);
  const TrainingData data = CollectTrainingData(history_, space, context.capacity, policy_);
  if (data.losses.empty()) return SuggestAtRandom(context, history_, spec_);

  const InputSpace quality_inputs(space, ModelView::kQuality);
  const Posterior quality = QualityPosterior(quality_inputs, data, *quality_);
  const InputSpace label_inputs(space, ModelView::kMemory);
  std::vector<Posterior> labels;
  if (data.memory.any_bad) labels.push_back(LabelPosterior(label_inputs, data.memory, *memory_));
  if (data.failure.any_bad) labels.push_back(LabelPosterior(label_inputs, data.failure, *failure_));
  std::vector<Surrogate> barriers;
  for (const Posterior& posterior : labels) barriers.push_back({&label_inputs, &posterior});
  const Acquisition acquisition({&quality_inputs, &quality}, quality.LeastMean(), barriers);
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  std::optional<ScoredCandidate> found =
      MaximizeAcquisition(context, space, acquisition, Incumbents(data), data.tried, rng);
  if (!found.has_value()) return SuggestAtRandom(context, history_, spec_);
  return Suggestion{.params = std::move(found->candidate.params),
                    .fit = found->candidate.fit,
                    .sampler = "gp",
                    .history_sequence = history_.sequence(),
                    .score = found->score};
}

}  // namespace hpo
