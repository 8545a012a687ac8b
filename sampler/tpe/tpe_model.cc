// Tested by tests/sampler/tpe_state_test.cc.
#include "sampler/tpe/tpe_model.h"

#include <algorithm>
#include <utility>

#include "sampler/space/model_view.h"

namespace hpo::sampler {
namespace {

// The ratios of memory and of failures count squared: a poor trial still teaches quality, one that
// did not run is lost. On spaces whose optimum lies on the limit of memory, and on those where most
// configurations fail, this lowers the lost trials and the regret.
constexpr double kLossExponent = 2.0;
// That of constraints counts once, as in c-TPE: a trial beyond a limit is known to be no good one,
// and teaches how near to it the others may go.
constexpr double kViolationExponent = 1.0;

std::vector<Point> PointsOf(const ModelSpace& space, std::span<const ParamMap* const> candidates) {
  std::vector<Point> points;
  points.reserve(candidates.size());
  for (const ParamMap* params : candidates) points.push_back(space.Encode(*params));
  return points;
}

}  // namespace

TpeModel::TpeModel(const SearchSpace& space, Bytes capacity, MemoryPolicy policy,
                   const TpeForm& form)
    : space_(space),
      capacity_(capacity),
      policy_(policy),
      form_(form),
      quality_space_(space_, ModelView::kQuality, form.grouping),
      memory_space_(space_, ModelView::kMemory),
      quality_(quality_space_.axes(), form.dependence),
      memory_{"memory",
              TrialLesson::kOverMemory,
              {memory_space_.axes(), Dependence::kIndependent},
              kLossExponent},
      failure_{"failures",
               TrialLesson::kFailed,
               {memory_space_.axes(), Dependence::kJoint},
               kLossExponent},
      violation_{"constraints",
                 TrialLesson::kViolating,
                 {memory_space_.axes(), Dependence::kJoint},
                 kViolationExponent} {}

void TpeModel::Update(const History& history, std::span<const TrialNumber> changed) {
  for (const TrialNumber number : changed) {
    const HistoryTrial& trial = history.trials().at(number);
    Known now{.lesson = LessonOf(trial, capacity_, policy_), .key = {}};
    if (TeachesQuality(now.lesson)) {
      now.key = QualityKeyOf(trial);
      const std::optional<Bytes> larger = LargerClassThan(trial);
      now.on_smaller = larger.has_value() && *larger <= capacity_;
    }
    several_objectives_ = several_objectives_ || trial.losses.size() > 1;
    Known& known = known_[number.value];
    num_running_ +=
        int{now.lesson == TrialLesson::kRunning} - int{known.lesson == TrialLesson::kRunning};
    num_on_smaller_ += int{now.on_smaller} - int{known.on_smaller};
    LearnQuality(trial, known, now);
    for (TrialLoss* loss : {&memory_, &failure_, &violation_}) {
      loss->Learn(memory_space_, trial, known.lesson, now.lesson);
    }
    known = now;
  }
  MoveGood(history);
  quality_.Refit(WeighGood());
  for (TrialLoss* loss : {&memory_, &failure_, &violation_}) {
    if (!loss->modelled && loss->num_lost > 0) StartModelling(*loss, history);
    if (loss->modelled) loss->ratio.Refit();
  }
}

// Every finished trial is on the side to be avoided until MoveGood() takes it.
void TpeModel::LearnQuality(const HistoryTrial& trial, const Known& before, const Known& now) {
  const bool was_finished = TeachesQuality(before.lesson);
  const bool is_finished = TeachesQuality(now.lesson);
  const int64_t number = trial.number.value;
  const auto add = [&] { quality_.AddAbove(number, quality_space_.Encode(trial.params)); };
  const auto good = std::lower_bound(good_.begin(), good_.end(), trial.number);
  if (good != good_.end() && *good == trial.number && before.key != now.key) {
    good_.erase(good);
    quality_.RemoveBelow(number);
    add();
  }
  if (was_finished) order_.erase(before.key);
  if (is_finished) order_.insert(now.key);
  if (was_finished && !is_finished) quality_.RemoveAbove(number);
  if (!was_finished && is_finished) add();
}

void TpeModel::StartModelling(TrialLoss& loss, const History& history) {
  loss.modelled = true;
  loss.num_lost = 0;
  for (const auto& [number, trial] : history.trials()) {
    const auto known = known_.find(number.value);
    if (known != known_.end()) {
      loss.Learn(memory_space_, trial, TrialLesson::kNothing, known->second.lesson);
    }
  }
}

std::vector<TrialNumber> TpeModel::FindGood(const History& history) const {
  // Trials on smaller cards may be among the good ones, but five of them make no more of them than
  // one here: what such cards cannot run was not open to them.
  constexpr int64_t kOnSmaller = 5;
  const auto num_finished = static_cast<int64_t>(order_.size());
  const int64_t num_here = num_finished - num_on_smaller_;
  const int64_t num_open = num_here + (num_on_smaller_ + kOnSmaller - 1) / kOnSmaller;
  const int64_t num_good = NumGood(num_open, num_running_, several_objectives_);
  if (several_objectives_) {
    std::vector<const HistoryTrial*> finished;
    for (const auto& [number, trial] : history.trials()) {
      const auto known = known_.find(number.value);
      if (known != known_.end() && TeachesQuality(known->second.lesson)) {
        finished.push_back(&trial);
      }
    }
    return BestTrials(finished, num_good);
  }
  std::vector<TrialNumber> best;
  for (auto key = order_.begin(); static_cast<int64_t>(best.size()) < num_good; ++key) {
    best.push_back(std::get<TrialNumber>(*key));
  }
  std::sort(best.begin(), best.end());
  return best;
}

void TpeModel::MoveGood(const History& history) {
  std::vector<TrialNumber> good = FindGood(history);
  const auto each_missing = [&](const std::vector<TrialNumber>& from,
                                const std::vector<TrialNumber>& in, const auto& act) {
    for (const TrialNumber number : from) {
      if (std::binary_search(in.begin(), in.end(), number)) continue;
      act(number.value, quality_space_.Encode(history.trials().at(number).params));
    }
  };
  each_missing(good_, good, [this](int64_t number, const Point& point) {
    quality_.RemoveBelow(number);
    quality_.AddAbove(number, point);
  });
  each_missing(good, good_, [this](int64_t number, const Point& point) {
    quality_.RemoveAbove(number);
    quality_.AddBelow(number, point);
  });
  good_ = std::move(good);
}

// By number. Those of several objectives lie along a front, and count alike.
std::vector<double> TpeModel::WeighGood() const {
  std::vector<double> weights(good_.size(), 1.0);
  if (several_objectives_) return weights;
  const std::vector<double> by_quality = WeightsOfGood(good_.size(), num_running_);
  auto key = order_.begin();
  for (const double weight : by_quality) {
    const TrialNumber number = std::get<TrialNumber>(*key++);
    const auto place = std::lower_bound(good_.begin(), good_.end(), number);
    weights[static_cast<size_t>(place - good_.begin())] = weight;
  }
  return weights;
}

// With 21 or more at the same time each parameter comes from a trial of its own.
double TpeModel::Together() const {
  return form_.together * std::max(0.0, 2.0 * ShareBeside(num_running_) - 1.0);
}

std::optional<ParamMap> TpeModel::DrawGood(Rng& rng) const {
  return quality_space_.Draw(quality_.below(), Together(), rng);
}

std::optional<ParamMap> TpeModel::DrawRunnable(Rng& rng) const {
  return memory_space_.Draw(memory_.ratio.below(), Together(), rng);
}

TpeScores TpeModel::Score(std::span<const ParamMap* const> candidates) const {
  TpeScores scores(candidates.size());
  scores.Multiply("quality", quality_.LogRelative(PointsOf(quality_space_, candidates)));
  std::vector<Point> points;
  for (const TrialLoss* loss : {&memory_, &failure_, &violation_}) {
    if (!loss->Counts()) continue;
    if (points.empty()) points = PointsOf(memory_space_, candidates);
    scores.Multiply(loss->name, loss->ratio.LogRelative(points), loss->exponent);
  }
  return scores;
}

}  // namespace hpo::sampler
