#include "worker/trainer/suite/memory_suite.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/files/write_file.h"
#include "memory/need/memory_replay.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/memory/open_device.h"
#include "worker/trainer/memory/trace_text.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/optimizers/adamw.h"
#include "worker/trainer/suite/device_profile.h"
#include "worker/trainer/suite/suite_plan.h"
#include "worker/trainer/tasks/text_classification.h"
#include "worker/trainer/training/train_loop.h"

namespace hpo::trainer {
namespace {

// Enough for the allocator's steady state: with the probe, three passes.
constexpr int64_t kSteps = 2;
constexpr double kLadder[] = {0.90, 0.94, 0.97, 0.99, 1.00, 1.01, 1.03, 1.06, 1.10};
constexpr double kStormLimit = 0.6;  // of the need
constexpr int64_t kTraces = 4;
// Of the budget: when comparisons are over, when ladders are; storms take what is left.
constexpr double kComparisonShare = 0.6;
constexpr double kLadderShare = 0.85;
constexpr int64_t kStormReports = 10;

class NobodyElse final : public EventSink, public StopSource {
 public:
  void Send(const UpMessage&) override {}
  std::optional<StopRequest> Poll() override { return std::nullopt; }
};

struct Run {
  bool completed = false;
  MemoryReport report;
  Bytes device_used;  // at the end, caches and everybody's included
  int64_t alloc_retries = 0;
  absl::Duration duration;
};

class MemorySuite {
 public:
  MemorySuite(const MemorySuiteOptions& options, const PrintLine& print, DeviceProfile profile,
              TrialDevice device)
      : options_(options),
        print_(print),
        profile_(std::move(profile)),
        device_(std::move(device)),
        start_(clock_.Monotonic()) {
    const MemoryUse use = device_.memory->Read();
    used_by_others_ = use.total - use.free - use.reserved - profile_.base;
  }

  absl::Status RunAll() {
    print_({{"type", "profile"}, {"device", DeviceProfileToJson(profile_)}});
    const std::vector<SuitePoint> points = SuitePoints(profile_.kind);
    HPO_RETURN_IF_ERROR(RecordTraces(points));
    // Before any out-of-memory error: what recovers from one may leave segments of another layout.
    for (const SuitePoint& point : points) CompareOne(point);
    // Ladders over points that need enough for a few percent to be more than a segment, and yet
    // little time.
    const size_t first = points.size() / 4;
    const size_t stride = std::max<size_t>(
        1, points.size() / 2 / static_cast<size_t>(std::max<int64_t>(1, options_.num_ladders)));
    for (int64_t i = 0; i < options_.num_ladders; ++i) {
      RunLadder(points[first + static_cast<size_t>(i) * stride]);
    }
    RunStorm(points[points.size() / 4]);
    print_({{"type", "done"}, {"seconds", absl::ToDoubleSeconds(Elapsed())}});
    return absl::OkStatus();
  }

 private:
  absl::Duration Elapsed() const { return clock_.Monotonic() - start_; }

  memory::MemoryEstimate Predict(const SuitePoint& point) const {
    const auto estimate =
        memory::ReplayMemory(SuiteInput(point, kSteps, device_.profile), point.plan);
    HPO_CHECK(estimate.ok());  // the points are ours
    return *estimate;
  }

  // What the allocator must be allowed, the baseline included.
  Bytes NeededLimit(const SuitePoint& point) const {
    const Bytes needed = Predict(point).needed_limit;
    return profile_.kind == "cpu" ? needed + device_.baseline : needed;
  }

  // As admission decides. A CPU's limit counts the baseline, which its estimate leaves out.
  bool IsAdmitted(const SuitePoint& point, Bytes limit) const {
    const Bytes for_trial = profile_.kind == "cpu" ? limit - device_.baseline : limit;
    const auto estimate =
        memory::EstimateWithin(SuiteInput(point, kSteps, device_.profile), point.plan, for_trial);
    HPO_CHECK(estimate.ok());
    return estimate->needed_limit <= for_trial;
  }

  Run TrainPoint(const SuitePoint& point, Bytes limit) {
    const absl::Duration begin = clock_.Monotonic();
    Run run;
    const int64_t retries = device_.memory->Read().alloc_retries;
    TrainerJob job;
    job.task.trainer.epochs = 1;
    job.task.objective.metric = "loss";
    job.task.memory.policy = MemoryPolicy::kStrict;
    job.task.limit = limit;
    device_.memory->SetLimit(limit);
    StageLog log(job, *device_.memory, nobody_);
    // Loading may meet the limit too: outside of the loop, so guarded here.
    bool trained = false;
    const BatchAttempt attempt = TryBatch(
        *device_.memory, device_.memory->Read().live, [&] { trained = Train(point, job, log); },
        [] {});
    run.completed = trained && !attempt.fault.has_value();
    const MemoryUse use = device_.memory->Read();
    run.device_used = use.total - use.free;
    run.report = log.Report();
    run.alloc_retries = use.alloc_retries - retries;
    GiveBack(device_);
    run.duration = clock_.Monotonic() - begin;
    return run;
  }

  bool Train(const SuitePoint& point, const TrainerJob& job, StageLog& log) {
    const auto model = MakeTextClassifier(
        point.model, {.num_labels = 2, .dropout = point.model.hidden_dropout}, device_.device);
    HPO_CHECK(model.ok());
    InitializeParameters(**model, ParameterNames(**model), 0.02, 0, 1);
    AdamW optimizer(DecayGroups(**model, 0.01), AdamWOptions{});
    TextData data;
    data.labels = {"a", "b"};
    data.train = SuiteRows(point, kSteps);
    data.validation = SuiteRows(point, 1);
    TextClassification task(
        *model,
        {.data = data, .max_positions = point.model.max_positions, .device = device_.device});
    TrainingOptions training;
    training.config = point.config;
    const memory::EstimateInput input = SuiteInput(point, kSteps, device_.profile);
    TrainLoop loop({.job = job,
                    .options = training,
                    .data = data,
                    .estimate_input = input,
                    .device = device_.device,
                    .memory = *device_.memory,
                    .task = task,
                    .optimizer = optimizer,
                    .log = log,
                    .events = nobody_,
                    .stops = nobody_,
                    .save_best = [](int64_t) { return true; }},
                   point.plan);
    const TrainLoopResult result = loop.Run();
    return result.outcome.has_value() && std::holds_alternative<Completed>(*result.outcome);
  }

  void CompareOne(const SuitePoint& point) {
    // The next takes longer than the one before, as points are sorted.
    if (Elapsed() + 2 * last_ > options_.budget * kComparisonShare) {
      print_({{"type", "skipped"}, {"name", point.name}});
      return;
    }
    const Run run = TrainPoint(point, Bytes{});
    last_ = run.duration;
    const memory::MemoryEstimate estimate = Predict(point);
    nlohmann::json line = {
        {"type", "configuration"},
        {"name", point.name},
        {"completed", run.completed},
        {"predicted_live_bytes", (estimate.expected_live_peak + device_.baseline).count},
        {"measured_live_bytes", run.report.live_peak.count},
        // In the order that runs, and over the orders that admission counts with.
        {"predicted_reserved_bytes", estimate.expected_reserved_peak.count},
        {"bound_reserved_bytes", estimate.reserved_peak.count},
        {"measured_reserved_bytes", run.report.reserved_peak.count},
        {"fragile", estimate.fragile},
        {"peak_phase", run.report.peak_phase},
        {"seconds", absl::ToDoubleSeconds(run.duration)}};
    if (profile_.kind == "cuda") {
      line["predicted_device_bytes"] = (estimate.expected_reserved_peak + profile_.base).count;
      line["measured_device_bytes"] = (run.device_used - used_by_others_).count;
    }
    print_(line);
  }

  void RunLadder(const SuitePoint& point) {
    const Bytes needed = NeededLimit(point);
    for (const double share : kLadder) {
      if (Elapsed() > options_.budget * kLadderShare) {
        print_({{"type", "skipped"}, {"name", absl::StrCat("ladder of ", point.name)}});
        return;
      }
      const Bytes limit{static_cast<int64_t>(static_cast<double>(needed.count) * share)};
      const Run run = TrainPoint(point, limit);
      print_({{"type", "ladder"},
              {"name", point.name},
              {"limit_bytes", limit.count},
              {"needed_bytes", needed.count},
              {"share", share},
              {"expected", IsAdmitted(point, limit)},
              // Without an out-of-memory error; after one it may have completed all the same.
              {"ran", run.completed && run.report.num_ooms == 0},
              {"recovered", run.completed && run.report.num_ooms > 0},
              {"alloc_retries", run.alloc_retries}});
    }
  }

  void RunStorm(const SuitePoint& point) {
    const Bytes limit{
        static_cast<int64_t>(static_cast<double>(NeededLimit(point).count) * kStormLimit)};
    const absl::Duration before = TrainPoint(point, Bytes{}).duration;
    const MemoryUse start = device_.memory->Read();
    int64_t met = 0;
    int64_t clean = 0;
    Bytes live_drift;
    Bytes reserved_drift;
    std::vector<int64_t> reserved_by_tenth;
    const int64_t tenth = std::max<int64_t>(1, options_.storm_cycles / kStormReports);
    for (int64_t cycle = 0; cycle < options_.storm_cycles; ++cycle) {
      met += TrainPoint(point, limit).completed ? 0 : 1;
      const MemoryUse now = device_.memory->Read();
      clean += now.live == device_.baseline ? 1 : 0;
      live_drift = std::max(live_drift, now.live - start.live);
      reserved_drift = std::max(reserved_drift, now.reserved - start.reserved);
      if ((cycle + 1) % tenth == 0) reserved_by_tenth.push_back(now.reserved.count);
    }
    const absl::Duration after = TrainPoint(point, Bytes{}).duration;
    print_({{"type", "storm"},
            {"name", point.name},
            {"cycles", options_.storm_cycles},
            {"met", met},
            {"at_baseline", clean},
            {"live_drift_bytes", live_drift.count},
            {"reserved_drift_bytes", reserved_drift.count},
            {"reserved_by_tenth", reserved_by_tenth},
            {"seconds_before", absl::ToDoubleSeconds(before)},
            {"seconds_after", absl::ToDoubleSeconds(after)}});
  }

  absl::Status RecordTraces(const std::vector<SuitePoint>& points) {
    for (int64_t i = 0; i < kTraces; ++i) {
      const SuitePoint& point = points[points.size() / 2 * static_cast<size_t>(i) / kTraces];
      HPO_ASSIGN_OR_RETURN(const std::unique_ptr<AllocatorLog> log,
                           OpenAllocatorLog(options_.device));
      std::vector<AllocatorEvent> events = log->Held();
      const Run run = TrainPoint(point, Bytes{});
      for (AllocatorEvent& event : log->Take()) events.push_back(std::move(event));
      const std::string file =
          absl::StrCat(profile_.kind, "_", absl::StrReplaceAll(point.name, {{" ", "_"}}), ".trace");
      HPO_RETURN_IF_ERROR(WriteFileAtomically(
          absl::StrCat(options_.trace_folder, "/", file),
          FormatTrace(events,
                      {absl::StrCat("configuration: ", point.name, ", ", kSteps, " steps"),
                       absl::StrCat("device: ", DeviceProfileToJson(profile_).dump()),
                       absl::StrCat("live_peak_bytes: ", run.report.live_peak.count),
                       absl::StrCat("reserved_peak_bytes: ", run.report.reserved_peak.count)})));
      print_({{"type", "trace"}, {"name", point.name}, {"file", file}, {"events", events.size()}});
    }
    return absl::OkStatus();
  }

  const MemorySuiteOptions& options_;
  const PrintLine& print_;
  DeviceProfile profile_;
  TrialDevice device_;
  NobodyElse nobody_;
  Bytes used_by_others_;  // of the card
  SystemClock clock_;
  absl::Duration start_;
  absl::Duration last_;
};

}  // namespace

absl::Status RunMemorySuite(const MemorySuiteOptions& options, const PrintLine& print) {
  HPO_ASSIGN_OR_RETURN(DeviceProfile profile, ProfileDevice(options.device, options.torch_build));
  HPO_ASSIGN_OR_RETURN(TrialDevice device, OpenTrialDevice(options.device));
  return MemorySuite(options, print, std::move(profile), std::move(device)).RunAll();
}

}  // namespace hpo::trainer
