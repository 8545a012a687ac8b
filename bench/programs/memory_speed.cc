// How long the memory engine takes to answer, in microseconds of processor time: medians over
// repetitions.
#include <time.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "common/study/model_catalog.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/memory_replay.h"
#include "memory/need/trial_trace.h"
#include "memory/plan/fit_decision.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

// bert-large on a card of 24 GiB, 16 rows of 512 tokens in 4 parts.
memory::EstimateInput BertLarge(const std::string& device) {
  memory::EstimateInput input;
  input.model = KnownModelShape("bert-large-uncased").value();
  input.config.batch_size = 48;
  input.config.grad_accum = 4;
  input.config.max_length = 512;
  input.device.kind = device;
  input.device.workspace = device == "cuda" ? MiB(64) : Bytes{};
  return input;
}

// Of this thread.
double ProcessorMicroseconds() {
  timespec now{};
  HPO_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double MedianMicroseconds(int repetitions, absl::FunctionRef<void()> work) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const double begin = ProcessorMicroseconds();
    work();
    times.push_back(ProcessorMicroseconds() - begin);
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[static_cast<size_t>(repetitions) / 2];
}

double ReplayMicroseconds(const memory::EstimateInput& input, const MemoryPlan& plan) {
  memory::TrialPasses passes = memory::LargestPasses(input, plan);
  std::vector<std::vector<memory::BatchShape>>& steps = passes.stretches.front().steps;
  steps.push_back(steps.front());
  passes.stretches.front().evaluation.clear();
  const memory::AllocationTrace trace = memory::TraceTrial(memory::ClassifierShapeOf(input, plan),
                                                           passes, memory::TraitsOf(input.device));
  return MedianMicroseconds(51, [&] { HPO_CHECK(memory::Replay(trace, {}).completed); });
}

// A configuration that the decider has met before, as the sampler asks for it again and again.
double DecisionMicroseconds(const memory::EstimateInput& input) {
  StudySpec study;
  study.trainer.defaults["model.name"] = std::string("bert-large-uncased");
  WorkerFacts worker;
  worker.device = input.device;
  worker.models = {{.name = "bert-large-uncased", .shape = input.model}};
  const memory::BatchFeasibility feasibility = memory::FitDecider(study, worker).At(GiB(24));
  const std::vector<ParamMap> candidates(24, ParamMap{{"train.batch_size", input.config.batch_size},
                                                      {"train.grad_accum", input.config.grad_accum},
                                                      {"tok.max_length", input.config.max_length}});
  return MedianMicroseconds(101, [&] { HPO_CHECK(feasibility(candidates).size() == 24); }) / 24;
}

int Main() {
  const memory::EstimateInput card = BertLarge("cuda");
  const MemoryPlan plan{.effective_batch = 64, .micro_batch = 16};
  const double estimate =
      MedianMicroseconds(1001, [&] { HPO_CHECK(memory::EstimateMemory(card, plan).ok()); });
  const double trace = MedianMicroseconds(51, [&] {
    HPO_CHECK(!memory::TraceTrial(memory::ClassifierShapeOf(card, plan),
                                  memory::LargestPasses(card, plan), memory::TraitsOf(card.device))
                   .events.empty());
  });
  const double need =
      MedianMicroseconds(31, [&] { HPO_CHECK(memory::ReplayMemory(card, plan).ok()); });
  const double planned =
      MedianMicroseconds(101, [&] { HPO_CHECK(memory::PlanMemory(card, {}, GiB(24)).ok()); });
  std::cout << nlohmann::json{{"estimate_us", estimate},
                              {"replay_us", ReplayMicroseconds(card, plan)},
                              {"plan_us", planned},
                              {"trace_us", trace},
                              {"need_us", need},
                              {"frontier_us", DecisionMicroseconds(card)}}
                   .dump()
            << "\n";
  return 0;
}

}  // namespace
}  // namespace hpo

int main() { return hpo::Main(); }
