#include "tests/worker/trainer/same_events.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "memory/need/trial_trace.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/tiny_trial.h"
#include "tests/worker/trainer/trace_recorder.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

// Before torch and oneDNN look at them: which kernels run must not depend on the machine. With
// AVX512-FP16 or AMX, for example, oneDNN takes scratch for products in float16.
const int kInstructionSet = setenv("ATEN_CPU_CAPABILITY", "avx2", /*overwrite=*/1);
const int kInstructionSetOfOneDnn = setenv("ONEDNN_MAX_CPU_ISA", "AVX2", /*overwrite=*/1);

// Takes the recording when training ends, before the model and the optimizer go.
class TakeAtTrainingEnd final : public EventSink, public StopSource {
 public:
  explicit TakeAtTrainingEnd(TraceRecorder& recorder) : recorder_(recorder) {}
  void Send(const UpMessage& message) override {
    const auto* memory = std::get_if<MemoryMessage>(&message);
    if (memory != nullptr && memory->stage == "Training End") events = recorder_.Take();
  }
  std::optional<StopRequest> Poll() override { return std::nullopt; }

  std::vector<AllocatorEvent> events;

 private:
  TraceRecorder& recorder_;
};

std::vector<AllocatorEvent> Record(const TrainerJob& job) {
  TrialDevice& device = TestDevice();  // opened before the recording
  TraceRecorder recorder(TestDeviceName());
  TakeAtTrainingEnd sink(recorder);
  const OutcomeMessage outcome = RunTrial(job, device, sink, sink);
  EXPECT_TRUE(outcome.outcome.has_value() && std::holds_alternative<Completed>(*outcome.outcome))
      << OutcomeToJson(*outcome.outcome);
  // Segments are the allocator's doing.
  std::erase_if(sink.events,
                [](const AllocatorEvent& event) { return event.kind != '+' && event.kind != '-'; });
  return sink.events;
}

std::string FormatGenerated(const memory::TraceEvent& event) {
  return absl::StrCat(event.allocates ? "+ " : "- ", event.block, " ", event.bytes, " B");
}

// A CPU's sizes are recorded as they are counted, a card's as they are asked for.
bool Matches(const AllocatorEvent& recorded, const memory::TraceEvent& generated) {
  if (recorded.block != generated.block) return false;
  if (!generated.allocates) return recorded.kind == '-';
  const Bytes bytes = TestDevice().device.is_cpu()
                          ? RoundUp(Bytes{generated.bytes}, CountingAllocator::kGranularity)
                          : Bytes{generated.bytes};
  return recorded.kind == '+' && recorded.bytes == bytes.count;
}

// Before and after a difference; HPO_EVENTS_SHOWN sets another number.
size_t EventsShown() {
  const char* const number = std::getenv("HPO_EVENTS_SHOWN");
  return number == nullptr ? 8 : static_cast<size_t>(std::atoi(number));
}

// The first event in which the two differ, with those around it; "" where they agree.
std::string FirstDifference(const std::vector<AllocatorEvent>& recorded,
                            const memory::AllocationTrace& generated) {
  const size_t common = std::min(recorded.size(), generated.events.size());
  size_t at = 0;
  while (at < common && Matches(recorded[at], generated.events[at])) ++at;
  if (at == recorded.size() && at == generated.events.size()) return "";
  std::string text = absl::StrCat("event ", at, " differs, in phase '", generated.PhaseOf(at),
                                  "' (trainer: ", recorded.size(),
                                  " events, model: ", generated.events.size(), ")\n");
  const size_t around = EventsShown();
  const size_t begin = at < around ? 0 : at - around;
  const size_t end = std::min(at + around, std::max(recorded.size(), generated.events.size()));
  for (size_t i = begin; i < end; ++i) {
    absl::StrAppend(&text, i == at ? "> " : "  ", "model ",
                    i < generated.events.size() ? FormatGenerated(generated.events[i]) : "end",
                    "   trainer ", i < recorded.size() ? FormatEvent(recorded[i]) : "end", "\n");
  }
  return text;
}

}  // namespace

void ExpectSameEvents(TrainerJob job, bool scales_gradients) {
  // Whether clipping scales is a matter of values; here it is chosen.
  job.task.params["train.max_grad_norm"] = scales_gradients ? 1e-6 : 1e6;
  auto described = DescribeJob(job, /*threads=*/1);
  ASSERT_TRUE(described.ok()) << described.status();
  described->passes.scales_gradients = scales_gradients;
  const memory::AllocationTrace generated =
      memory::TraceTrial(memory::ClassifierShapeOf(described->input, described->plan),
                         described->passes, memory::TraitsOf(described->input.device));
  const std::string difference = FirstDifference(Record(job), generated);
  EXPECT_TRUE(difference.empty()) << difference;
}

void ExpectSameEvents(const SyntheticTrial& trial) {
  SCOPED_TRACE(Describe(trial));
  const SyntheticFolder folder(trial, testing::TempDir());
  ExpectSameEvents(folder.Job());
}

Bytes ExpectPeakWithinEstimates(const TrainerJob& job) {
  const auto described = DescribeJob(job, /*threads=*/1);
  EXPECT_TRUE(described.ok()) << described.status();
  const auto replay = memory::ReplayMemory(described->input, described->plan);
  const auto bound = memory::EstimateMemory(described->input, described->plan);
  EXPECT_TRUE(replay.ok() && bound.ok()) << replay.status() << bound.status();
  RecordingEvents events;
  const OutcomeMessage message = RunTrial(job, TestDevice(), events, events);
  EXPECT_TRUE(std::holds_alternative<Completed>(*message.outcome))
      << OutcomeToJson(*message.outcome);
  const Bytes used = message.memory.live_peak - message.memory.baseline;
  EXPECT_LE(used, replay->live_peak);
  EXPECT_LE(replay->live_peak, bound->live_peak);
  return used;
}

SyntheticTrial Small() {
  SyntheticTrial trial;
  trial.hidden = 48;
  trial.intermediate = 56;
  trial.heads = 2;
  trial.vocabulary = 101;
  trial.positions = 70;
  trial.token_types = 3;
  trial.labels = 5;
  trial.batch_size = 7;
  trial.micro_batch = 7;
  trial.train_lengths = {30, 30, 30, 30, 30, 30, 30};
  trial.validation_lengths = {40, 40, 40, 40, 40, 40, 40, 40};
  return trial;
}

}  // namespace hpo::trainer
