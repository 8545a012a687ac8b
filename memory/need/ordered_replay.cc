#include "memory/need/ordered_replay.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/memory_replay.h"
#include "memory/need/stretch_player.h"
#include "memory/need/trial_trace.h"

namespace hpo::memory {
namespace {

// Of passes that are alike one is traced.
class OrderedPasses {
 public:
  explicit OrderedPasses(const TrialPasses& all) : scales_gradients_(all.scales_gradients) {
    for (const MeasuredSteps& stretch : all.stretches) {
      const bool is_probe = all.begins_with_probe && &stretch == &all.stretches.front();
      for (const std::vector<BatchShape>& step : stretch.steps) {
        if (is_probe) {
          probe_.push_back(step);
        } else if (!Add(step, steps_, Kind::kStep)) {
          return;
        }
      }
      for (const BatchShape& batch : stretch.evaluation) {
        if (!Add(batch, evaluation_, Kind::kEvaluation)) return;
      }
    }
  }

  // Loading, the probe, each different step, each different batch of an evaluation.
  AllocationTrace Trace(const ClassifierShape& shape, const KernelTraits& traits) const {
    TrialPasses passes;
    passes.begins_with_probe = !probe_.empty();
    passes.scales_gradients = scales_gradients_;
    if (!probe_.empty()) passes.stretches.push_back({.steps = probe_, .evaluation = {}});
    passes.stretches.push_back({.steps = steps_, .evaluation = evaluation_});
    return TraceTrial(shape, passes, traits);
  }

  // `stretches` are those of Trace(). The cache is given back after so many steps; 0: never.
  Bytes ReservedPeak(const std::vector<Stretch>& stretches, StretchPlayer player,
                     int64_t clear_cache_every) const {
    HPO_CHECK(stretches.size() == 1 + probe_.size() + steps_.size() + evaluation_.size());
    for (size_t i = 0; i <= probe_.size(); ++i) player.Play(stretches[i]);
    std::vector<bool> finds_all(stretches.size());
    int64_t played = 0;
    int64_t steps = 0;
    for (const Pass& pass : order_) {
      const bool is_step = pass.kind == Kind::kStep;
      const size_t number = 1 + probe_.size() + (is_step ? 0 : steps_.size()) + pass.number;
      if (!finds_all[number]) {
        if (++played > kMostPlayedPasses) break;
        const Bytes before = player.stats().reserved;
        player.Play(stretches[number]);
        // One that has made the cache grow may cut it up in another way when it comes again.
        finds_all[number] = player.stats().reserved == before;
        if (!finds_all[number]) std::fill(finds_all.begin(), finds_all.end(), false);
      }
      if (!is_step || clear_cache_every == 0 || ++steps % clear_cache_every > 0) continue;
      player.EmptyCache();
      std::fill(finds_all.begin(), finds_all.end(), false);
    }
    return player.stats().reserved_peak;
  }

 private:
  enum class Kind { kStep, kEvaluation };

  struct Pass {
    Kind kind = Kind::kStep;
    size_t number = 0;  // of the different ones of its kind
  };

  // False: it would be one too many.
  template <typename Passed>
  bool Add(const Passed& passed, std::vector<Passed>& different, Kind kind) {
    const auto found = std::find(different.begin(), different.end(), passed);
    const auto number = static_cast<size_t>(found - different.begin());
    if (found == different.end()) {
      if (std::ssize(steps_) + std::ssize(evaluation_) == kMostDifferentPasses) return false;
      different.push_back(passed);
    }
    order_.push_back({.kind = kind, .number = number});
    return true;
  }

  std::vector<std::vector<BatchShape>> probe_;
  std::vector<std::vector<BatchShape>> steps_;  // that differ
  std::vector<BatchShape> evaluation_;          // batches that differ
  std::vector<Pass> order_;                     // after the probe's step
  const bool scales_gradients_;
};

}  // namespace

absl::StatusOr<Bytes> ReplayReservedPeak(const EstimateInput& input, const MemoryPlan& plan,
                                         const TrialPasses& passes) {
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
  if (input.device.kind == "cpu" || !CanBeReplayed(bound.live_peak)) {
    return absl::UnimplementedError(
        absl::StrCat("replay of passes in their order: expected a model of our trainer on a card, "
                     "got ",
                     input.model.family, " on ", input.device.kind));
  }
  const KernelTraits traits = TraitsOf(input.device);
  const OrderedPasses ordered(passes);
  const AllocationTrace trace = ordered.Trace(ClassifierShapeOf(input, plan), traits);
  return ordered.ReservedPeak(CutIntoStretches(trace),
                              StretchPlayer(input.device, traits, trace.num_blocks),
                              input.config.clear_cache_every);
}

}  // namespace hpo::memory
