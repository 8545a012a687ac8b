// How long a sampler takes for its next suggestion. Reads trials as JSON lines {"params", "value"}
// of problem mixed10 from a file, then takes one turn per line of standard input: folds in the end
// of the trial before, suggests, starts the trial. For each turn it writes the microseconds of
// processor time; at the end of input, {"rss_mb"}, its largest size.
#include <sys/resource.h>
#include <time.h>

#include <fstream>
#include <iostream>
#include <string>

#include "bench/sampler/problem.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "sampler/factory/make_sampler.h"

namespace hpo {
namespace {

constexpr Bytes kCapacity = GiB(16);

// A quarter of the space needs more than the capacity.
std::vector<memory::Fit> FitsOf(std::span<const ParamMap> candidates) {
  std::vector<memory::Fit> fits;
  fits.reserve(candidates.size());
  for (const ParamMap& params : candidates) {
    const int64_t layers = *FindInt(params, "i0");
    const Bytes needed = MiB(682 * layers);
    fits.push_back({.fits = needed <= kCapacity, .needed = needed});
  }
  return fits;
}

// Of this thread.
double ProcessorMicroseconds() {
  timespec now{};
  HPO_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// A study in which one trial follows another.
class Turns {
 public:
  Turns(const SamplerProblem& problem, const std::string& type) : problem_(problem) {
    StudySpec study;
    study.space = problem.space;
    study.sampler = {.type = type, .seed = 7};
    sampler_ = sampler::MakeSampler(study);
  }

  void Fold(sampler::HistoryTrial trial) {
    trial.number = TrialNumber{number_++};
    sampler_->Observe({++sequence_, std::move(trial)});
  }

  // Suggests, after the end of the trial before where there is one.
  double Take() {
    const double begin = ProcessorMicroseconds();
    if (running_.has_value()) sampler_->Observe({++sequence_, *running_});
    const auto suggestion =
        sampler_->Suggest({TrialNumber{number_}, problem_.space, kCapacity, FitsOf});
    HPO_CHECK(suggestion.ok());
    running_ =
        sampler::HistoryTrial{.number = TrialNumber{number_++}, .params = suggestion->params};
    sampler_->Observe({++sequence_, *running_});
    const double end = ProcessorMicroseconds();
    Rng noise(1, 1);
    sampler::EndTrial(problem_.run(running_->params, noise), kCapacity, *running_);
    return end - begin;
  }

 private:
  SamplerProblem problem_;
  std::unique_ptr<sampler::Sampler> sampler_;
  std::optional<sampler::HistoryTrial> running_;
  int64_t number_ = 0;
  int64_t sequence_ = 0;
};

int Main(const std::string& type, const std::string& path) {
  Turns turns(FindSamplerProblem("mixed10").value(), type);
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    turns.Fold({.params = ParamsFromJson(row["params"]).value(),
                .state = TrialState::kCompleted,
                .losses = {row["value"].get<double>()}});
  }
  HPO_CHECK(file.eof());
  while (std::getline(std::cin, line)) std::cout << turns.Take() << std::endl;
  rusage usage{};
  HPO_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  std::cout << nlohmann::json{{"rss_mb", static_cast<double>(usage.ru_maxrss) / 1024.0}}.dump()
            << "\n";
  return 0;
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: sampler_speed SAMPLER TRIALS.jsonl < one line per turn\n";
    return 2;
  }
  return hpo::Main(argv[1], argv[2]);
}
