// Which configurations of a space fit on GPUs, when a few of them are measured.
//
// The first measurements fill the space: each is the configuration farthest from those before it,
// beginning at one corner. Then a fit (learned_need.h) answers for each configuration whose verdict
// is the same at both ends of an interval around its expected memory, and measurements go where it
// is not, until there are none such. The interval is at least as wide as the largest of the fit's
// last errors, each on a configuration that it did not know: a few measurements near the frontier
// have to come out as expected before the fit is believed there.
//
// One owner thread. A call of Add takes milliseconds for 2,000 configurations.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "memory/frontier/frontier_space.h"
#include "memory/frontier/space_filling.h"
#include "memory/learned/learned_need.h"

namespace hpo::memory {

enum class FrontierVerdict { kFits, kTight, kDoesNotFit, kNotKnown };

// A measurement on one GPU.
struct FrontierMeasurement {
  FrontierVerdict verdict = FrontierVerdict::kNotKnown;
  Bytes required;  // 0: not known
  // The program freed its cache to stay within the GPU's memory: with more it would have required
  // more.
  bool freed_cache = false;
};

struct FrontierGpu {
  Bytes total;
  Bytes margin;  // with less to spare, a configuration that fits is tight
};

// What holds for a configuration on one GPU.
struct FrontierAnswer {
  FrontierVerdict verdict = FrontierVerdict::kNotKnown;
  bool was_measured = false;
  Bytes required;  // measured or expected; 0: not known
};

struct FrontierOptions {
  size_t most_measurements = 40;
  // Measure every configuration, as far as `most_measurements` goes.
  bool measure_all = false;
};

class Frontier {
 public:
  // Spaces of as many configurations are measured whole.
  static constexpr size_t kSmallSpace = 12;
  // What counts as the error of a fit that has predicted nothing yet, by the logarithm.
  static constexpr double kUnproven = 0.05;
  // Number of predictions by which a fit is judged.
  static constexpr size_t kProof = 6;

  // `space` is the search space that `considered` is of.
  Frontier(SearchSpace space, FrontierSpace considered, const FrontierOptions& options);

  const FrontierSpace& considered() const { return considered_; }

  // Index of the configuration to measure next, which is then being measured. nullopt: there is
  // none, as far as is known before the results of those that are being measured.
  std::optional<size_t> Next();

  // The result for a configuration that Next returned, for each GPU; `gpus` is the same each time.
  void Add(size_t index, const std::vector<FrontierGpu>& gpus,
           std::vector<FrontierMeasurement> measured);
  // It could not be measured.
  void Fail(size_t index);

  // NotKnown as long as nothing was measured.
  FrontierAnswer Answer(size_t index, size_t gpu) const;
  bool HasFailed(size_t index) const { return states_[index] == State::kFailed; }
  size_t num_measured() const { return num_measured_; }

  // Numbers of the axes (FrontierSpace), those first whose values change the required memory on the
  // first GPU most.
  std::vector<size_t> AxesByEffect() const;

 private:
  enum class State { kOpen, kMeasuring, kMeasured, kFailed };

  bool IsDecided(size_t index) const;
  void JudgeFit(size_t index, const std::vector<FrontierMeasurement>& measured);
  // The largest of the last errors.
  double Slack() const;
  void Conclude();
  FrontierAnswer ConclusionFor(const ParamMap& params, const FrontierGpu& gpu,
                               const LearnedNeed& need) const;

  const SearchSpace space_;
  const FrontierSpace considered_;
  const FrontierOptions options_;
  std::vector<std::string> relevant_;
  SpaceFilling filling_;  // with what was or is being measured
  std::vector<State> states_;
  std::vector<std::vector<FrontierMeasurement>> measured_;  // by configuration, by GPU
  std::vector<FrontierGpu> gpus_;
  std::vector<std::vector<FrontierAnswer>> answers_;  // by GPU, by configuration
  size_t num_filling_ = 0;                            // measurements that fill the space
  size_t num_taken_ = 0;
  size_t num_measured_ = 0;
  std::vector<double> errors_;  // of predictions, by the logarithm
};

}  // namespace hpo::memory
