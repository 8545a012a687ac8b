#include "memory/need/layered_peak.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/study/model_catalog.h"
#include "gtest/gtest.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/trial_trace.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

EstimateInput InputOf(const std::string& model, int64_t layers, bool cpu) {
  EstimateInput input = TinyInput();
  input.model = *KnownModelShape(model);
  input.model.num_layers = layers;
  input.device.kind = cpu ? "cpu" : "cuda";
  input.device.threads = 2;
  return input;
}

int64_t TracedPeak(const EstimateInput& input, const TrialPasses& passes,
                   const KernelTraits& traits) {
  const AllocationTrace trace = TraceTrial(ClassifierShapeOf(input, MemoryPlan{}), passes, traits);
  return FindLivePeak(trace, Bytes{traits.granularity}).peak.count;
}

// That of the trace of all layers, less the loss, the step count and on a card the numbers that
// nobody has read.
void ExpectTracedPeak(const EstimateInput& input, const MemoryPlan& plan) {
  const KernelTraits traits = TraitsOf(input.device);
  const TrialPasses passes = LargestPasses(input, plan);
  const LayeredPeak peak = FindLayeredPeak(ClassifierShapeOf(input, MemoryPlan{}), passes, traits);
  const int64_t expected = TracedPeak(input, passes, traits);
  const int64_t found =
      3 * peak.parameters + std::max(peak.training.Total(), peak.evaluation.Total());
  EXPECT_LE(found, expected);
  EXPECT_LE(expected - found, traits.cpu ? 2 << 10 : 4 << 10);
}

// Of every family.
TEST(LayeredPeak, IsThatOfTheWholeTrace) {
  for (const char* model : {"bert-base-uncased", "roberta-base", "microsoft/deberta-v3-small",
                            "microsoft/deberta-v2-xlarge", "google/electra-small-discriminator",
                            "distilbert-base-uncased", "gpt2", "Qwen/Qwen2.5-0.5B",
                            "TinyLlama/TinyLlama-1.1B-Chat-v1.0"}) {
    for (const int64_t layers : {1, 2, 3, 4, 9}) {
      for (const auto& [effective, micro] : {std::pair(4, 4), std::pair(7, 2)}) {
        for (const bool cpu : {true, false}) {
          SCOPED_TRACE(absl::StrCat(model, ", ", layers, " layers, ", effective, " rows by ", micro,
                                    cpu ? ", cpu" : ", cuda"));
          ExpectTracedPeak(InputOf(model, layers, cpu),
                           {.effective_batch = effective, .micro_batch = micro});
        }
      }
    }
  }
}

TEST(LayeredPeak, IsThatOfTheWholeTraceWithoutPadding) {
  for (const char* model : {"bert-base-uncased", "roberta-base", "distilbert-base-uncased"}) {
    for (const int64_t layers : {2, 3, 7}) {
      for (const bool cpu : {true, false}) {
        SCOPED_TRACE(absl::StrCat(model, ", ", layers, " layers", cpu ? ", cpu" : ", cuda"));
        EstimateInput input = InputOf(model, layers, cpu);
        input.config.unpadded = true;
        ExpectTracedPeak(input, {.effective_batch = 7, .micro_batch = 3});
      }
    }
  }
}

}  // namespace
}  // namespace hpo::memory
