#include "server/placement/misfit_advice.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/study/trial.h"
#include "memory/plan/config_advice.h"
#include "memory/plan/space_survey.h"
#include "sampler/space/cheapest_configuration.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// Enough for shares to a percent or two, in tenths of a second.
constexpr int64_t kMostSurveyed = 5000;

memory::FitDecider DeciderOf(StudySpec study, MemoryPolicy policy, const WorkerFacts& worker,
                             const MemoryKnowledge& knowledge) {
  study.memory.policy = policy;
  return memory::FitDecider(study, worker, knowledge.evidence, knowledge.replays);
}

// Never "100 %" of what is not all.
std::string Percent(int64_t part, int64_t whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part < whole && percent > 99.9) return "over 99.9 %";
  return absl::StrFormat("%.3g %%", percent);
}

// What makes `params` fit. Empty where nothing is known of its need.
std::string HowItFits(const StudySpec& study, const memory::FitDecider& strict,
                      const memory::FitDecider& plan, const ParamMap& params, Bytes capacity) {
  const int64_t batch_size = FindInt(params, kBatchSizeParameter).value_or(1);
  if (study.memory.policy == MemoryPolicy::kStrict && batch_size > 1) {
    const auto smaller = memory::LargestBatchSize(strict, params, capacity, batch_size - 1);
    if (smaller.ok() && smaller->has_value()) {
      return absl::StrCat("reduce ", kBatchSizeParameter, " to ",
                          (*smaller)->planned.plan.micro_batch,
                          ", or let memory.policy: plan split batches");
    }
  }
  const auto advice = memory::AdviseConfig(strict, plan, params, capacity);
  if (!advice.ok()) return "";
  std::string needs_card =
      absl::StrCat("a worker with ", FormatBytes(advice->smallest_capacity), " could run it");
  if (!advice->fits || advice->changes.empty()) return needs_card;
  std::vector<std::string> settings;
  for (const auto& [name, value] : advice->changes.back().params) {
    const auto given = params.find(name);
    if (given != params.end() && given->second == value) continue;
    settings.push_back(absl::StrCat(name == kMaxLengthParameter ? "reduce " : "set ", name, " to ",
                                    FormatParam(value)));
  }
  if (settings.empty()) return needs_card;
  return absl::StrCat(absl::StrJoin(settings, " and "), ", or ", needs_card);
}

// Where what other trials used or met rules out all: nobody can say which change would help.
std::string AdviseOnLearnedMisfit(const StudySpec& study, const WorkerFacts& worker,
                                  const MemoryKnowledge& knowledge) {
  if (!memory::GoesByLearnedNeed(study.memory, worker)) return "";
  const sampler::AskContext context = AskFor(study, worker, TrialNumber{0}, knowledge);
  const std::optional<sampler::Candidate> least = sampler::LeastDemanding(context);
  if (!least.has_value() || least->fit.fits) return "";
  return "give its trials more memory (--memory-limit; in Python memory=), or let them run without "
         "a check (memory: {policy: off})";
}

}  // namespace

std::string AdviseOnMisfit(const StudySpec& study, const WorkerFacts& worker,
                           const MemoryKnowledge& knowledge) {
  const sampler::AskContext context = AskFor(study, worker, TrialNumber{0}, knowledge);
  if (!context.feasibility) return "";
  StudySpec servable = study;
  servable.space = context.space;
  const Bytes capacity = memory::QuantizeCapacity(worker.capacity);
  const memory::FitDecider strict = DeciderOf(study, MemoryPolicy::kStrict, worker, knowledge);
  const auto survey = memory::SurveySpace(
      servable, strict, {.cards = {capacity}, .most_configurations = kMostSurveyed, .seed = 0});
  if (!survey.ok()) return "";
  const memory::CardSurvey& card = survey->cards.front();
  const memory::PolicyCount& count =
      study.memory.policy == MemoryPolicy::kStrict ? card.strict : card.plan;
  if (count.does_not_fit == 0) return "";
  std::string text = absl::StrCat(Percent(count.does_not_fit, count.fits + count.does_not_fit),
                                  " of the space does not fit");
  if (count.fits > 0) {
    if (count.cut.has_value()) absl::StrAppend(&text, "; keep to ", count.cut->description);
    return text;
  }
  const std::optional<sampler::Candidate> least = sampler::LeastDemanding(context);
  if (!least.has_value()) return text;
  const std::string how =
      HowItFits(study, strict, DeciderOf(study, MemoryPolicy::kPlan, worker, knowledge),
                CompleteParams(study, least->params), capacity);
  return how.empty() ? text : absl::StrCat(text, "; ", how);
}

std::string MisfitAdvisor::Advise(const StudySpec& study, WorkerFacts worker,
                                  const MemoryKnowledge& knowledge) {
  worker.capacity = memory::QuantizeCapacity(worker.capacity);
  const std::string by_estimate = AdviseByEstimate(study, worker, knowledge);
  // What is learnt changes with each trial, and is looked at at once.
  return by_estimate.empty() ? AdviseOnLearnedMisfit(study, worker, knowledge) : by_estimate;
}

std::string MisfitAdvisor::AdviseByEstimate(const StudySpec& study, const WorkerFacts& worker,
                                            const MemoryKnowledge& knowledge) {
  const auto key = std::make_pair(study.name, worker.worker);
  {
    absl::MutexLock lock(&mutex_);
    const auto found = given_.find(key);
    if (found != given_.end() && found->second.study == study && found->second.worker == worker &&
        found->second.calibration_version == knowledge.calibration_version) {
      return found->second.advice;
    }
  }
  Given given{study, worker, knowledge.calibration_version,
              AdviseOnMisfit(study, worker, knowledge)};
  absl::MutexLock lock(&mutex_);
  return given_.insert_or_assign(key, std::move(given)).first->second.advice;
}

}  // namespace hpo::server
