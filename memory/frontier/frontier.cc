#include "memory/frontier/frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace hpo::memory {
namespace {

bool IsKnown(const FrontierMeasurement& measured) {
  return measured.required.count > 0 && !measured.freed_cache;
}

}  // namespace

Frontier::Frontier(SearchSpace space, FrontierSpace considered, const FrontierOptions& options)
    : space_(std::move(space)),
      considered_(std::move(considered)),
      options_(options),
      filling_(considered_) {
  num_filling_ = LearnedNeed::kFewestUses;
  for (const FrontierAxis& axis : considered_.axes) {
    relevant_.push_back(axis.name);
    num_filling_ += axis.is_number ? 2 : axis.values.size() - 1;
  }
  const size_t count = considered_.configurations.size();
  if (options_.measure_all || count <= kSmallSpace) num_filling_ = count;
  states_.assign(count, State::kOpen);
  measured_.resize(count);
}

std::optional<size_t> Frontier::Next() {
  if (num_taken_ >= options_.most_measurements) return std::nullopt;
  const bool is_filling = num_taken_ < num_filling_;
  const std::optional<size_t> next =
      filling_.Farthest([&](size_t index) { return is_filling || !IsDecided(index); });
  if (!next) return std::nullopt;
  filling_.Take(*next);
  states_[*next] = State::kMeasuring;
  ++num_taken_;
  return next;
}

bool Frontier::IsDecided(size_t index) const {
  return !answers_.empty() &&
         std::none_of(answers_.begin(), answers_.end(), [index](const auto& of_gpu) {
           return of_gpu[index].verdict == FrontierVerdict::kNotKnown;
         });
}

void Frontier::JudgeFit(size_t index, const std::vector<FrontierMeasurement>& measured) {
  if (num_measured_ < num_filling_) return;
  double largest = 0.0;
  bool was_expected = false;
  for (size_t gpu = 0; gpu < measured.size(); ++gpu) {
    const Bytes expected = answers_[gpu][index].required;
    if (!IsKnown(measured[gpu]) || expected.count == 0) continue;
    was_expected = true;
    largest =
        std::max(largest, std::abs(std::log(static_cast<double>(expected.count) /
                                            static_cast<double>(measured[gpu].required.count))));
  }
  if (was_expected) errors_.push_back(largest);
}

double Frontier::Slack() const {
  if (errors_.size() < kProof) {
    return errors_.empty() ? kUnproven
                           : std::max(kUnproven, *std::max_element(errors_.begin(), errors_.end()));
  }
  return *std::max_element(errors_.end() - kProof, errors_.end());
}

void Frontier::Add(size_t index, const std::vector<FrontierGpu>& gpus,
                   std::vector<FrontierMeasurement> measured) {
  if (!answers_.empty()) JudgeFit(index, measured);
  gpus_ = gpus;
  states_[index] = State::kMeasured;
  measured_[index] = std::move(measured);
  ++num_measured_;
  Conclude();
}

void Frontier::Fail(size_t index) {
  states_[index] = State::kFailed;
  if (!answers_.empty()) Conclude();
}

void Frontier::Conclude() {
  answers_.assign(gpus_.size(), {});
  for (size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    std::vector<NeedObservation> seen;
    for (size_t index = 0; index < measured_.size(); ++index) {
      if (states_[index] != State::kMeasured) continue;
      const FrontierMeasurement& one = measured_[index][gpu];
      if (one.verdict == FrontierVerdict::kNotKnown) continue;
      const bool misses = one.verdict == FrontierVerdict::kDoesNotFit;
      const bool is_known = IsKnown(one);
      seen.push_back({.params = considered_.configurations[index],
                      .bytes = is_known ? one.required : gpus_[gpu].total,
                      .censored = !is_known && misses,
                      .unmeasured = !is_known && !misses});
    }
    const LearnedNeed need(space_, relevant_, seen);
    for (size_t index = 0; index < states_.size(); ++index) {
      if (states_[index] == State::kMeasured) {
        const FrontierMeasurement& one = measured_[index][gpu];
        answers_[gpu].push_back(
            {.verdict = one.verdict, .was_measured = true, .required = one.required});
      } else if (states_[index] == State::kFailed) {
        answers_[gpu].push_back({.was_measured = true});
      } else {
        answers_[gpu].push_back(ConclusionFor(considered_.configurations[index], gpus_[gpu], need));
      }
    }
  }
}

FrontierAnswer Frontier::ConclusionFor(const ParamMap& params, const FrontierGpu& gpu,
                                       const LearnedNeed& need) const {
  const LearnedFit fit = need.Decide(params, gpu.total);
  FrontierAnswer answer{.required = fit.expected};
  if (fit.needed.count == 0) return answer;
  // What a larger configuration ran within is no expectation, and needs no interval.
  const bool is_by_larger = fit.fits && fit.needed <= fit.expected;
  if (is_by_larger || fit.expected.count == 0) {
    answer.verdict =
        fit.needed + gpu.margin > gpu.total ? FrontierVerdict::kTight : FrontierVerdict::kFits;
    if (answer.required.count == 0) answer.required = fit.needed;
    return answer;
  }
  // The interval is as wide below what is expected as above it.
  const auto expected = static_cast<double>(fit.expected.count);
  const double width =
      std::max(static_cast<double>(fit.needed.count) / expected, std::exp(Slack()));
  const auto total = static_cast<double>(gpu.total.count);
  if (expected * width + static_cast<double>(gpu.margin.count) <= total) {
    answer.verdict = FrontierVerdict::kFits;
  } else if (expected * width <= total) {
    answer.verdict = FrontierVerdict::kTight;
  } else if (expected / width > total) {
    answer.verdict = FrontierVerdict::kDoesNotFit;
  }
  return answer;
}

FrontierAnswer Frontier::Answer(size_t index, size_t gpu) const {
  return answers_.empty() ? FrontierAnswer{.was_measured = states_[index] == State::kFailed}
                          : answers_[gpu][index];
}

std::vector<size_t> Frontier::AxesByEffect() const {
  std::vector<double> effects;
  for (const FrontierAxis& axis : considered_.axes) {
    struct Mean {
      double sum = 0.0;
      int count = 0;
    };
    std::map<ParamValue, Mean> by_value;
    for (size_t index = 0; index < states_.size() && !answers_.empty(); ++index) {
      const ParamMap& params = considered_.configurations[index];
      const auto value = params.find(axis.name);
      const Bytes required = answers_[0][index].required;
      if (value == params.end() || required.count <= 0) continue;
      Mean& mean = by_value[value->second];
      mean.sum += std::log(static_cast<double>(required.count));
      ++mean.count;
    }
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const auto& [value, mean] : by_value) {
      low = std::min(low, mean.sum / mean.count);
      high = std::max(high, mean.sum / mean.count);
    }
    effects.push_back(by_value.empty() ? 0.0 : high - low);
  }
  std::vector<size_t> order(effects.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&effects](size_t a, size_t b) { return effects[a] > effects[b]; });
  return order;
}

}  // namespace hpo::memory
