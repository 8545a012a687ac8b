// What is stored and exchanged as JSON, byte by byte, and what reading makes of each member that is
// absent, null or of another type: tests/golden/stored_json.txt.
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_facts_fields.h"
#include "common/study/model_catalog.h"
#include "common/study/study_fields.h"
#include "common/study/study_json.h"
#include "common/study/trial_fields.h"
#include "common/study_file/study_file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"
#include "tests/golden_file.h"

namespace hpo {
namespace {

using Json = nlohmann::json;
using Reading = std::function<absl::StatusOr<Json>(const Json&)>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Every member of objects, at any depth.
void AddPointers(const Json& json, const Json::json_pointer& here,
                 std::vector<Json::json_pointer>& pointers) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      pointers.push_back(here / key);
      AddPointers(value, here / key, pointers);
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) AddPointers(json[i], here / i, pointers);
  }
}

std::string Shown(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Golden {
 public:
  // Its JSON alone.
  void Write(const std::string& name, const Json& json) {
    absl::StrAppend(&text_, name, " ", Shown(json), "\n");
  }

  // And what `read` makes of changes to it.
  void WriteAndRead(const std::string& name, const Json& json, const Reading& read) {
    Write(name, json);
    std::vector<Json::json_pointer> pointers;
    AddPointers(json, Json::json_pointer(), pointers);
    for (const Json::json_pointer& pointer : pointers) {
      Json without = json;
      without[pointer.parent_pointer()].erase(pointer.back());
      Add(absl::StrCat(name, " ", pointer.to_string(), " absent"), without, pointer, read);
      for (const Json& other : {Json(), Json(-1), Json("x"), Json::array({1})}) {
        Json changed = json;
        changed[pointer] = other;
        Add(absl::StrCat(name, " ", pointer.to_string(), " ", other.dump()), changed, pointer,
            read);
      }
    }
  }

  const std::string& text() const { return text_; }

 private:
  void Add(const std::string& what, const Json& json, const Json::json_pointer& pointer,
           const Reading& read) {
    const absl::StatusOr<Json> again = read(json);
    absl::StrAppend(&text_, what, ": ");
    if (!again.ok()) {
      absl::StrAppend(&text_, again.status().ToString(), "\n");
    } else {
      absl::StrAppend(&text_, again->contains(pointer) ? Shown((*again)[pointer]) : "absent", "\n");
    }
  }

  std::string text_;
};

template <typename T>
Reading Through(absl::StatusOr<T> (*read)(const Json&), Json (*write)(const T&)) {
  return [read, write](const Json& json) -> absl::StatusOr<Json> {
    const absl::StatusOr<T> value = read(json);
    if (!value.ok()) return value.status();
    return write(*value);
  };
}

void AddStudies(Golden& golden) {
  const Reading read = Through<StudySpec>(StudyFromJson, StudyToJson);
  golden.Write("study_default", StudyToJson(StudySpec()));
  golden.WriteAndRead("study_full", StudyToJson(FullStudySpec()), read);
  StudySpec spec;
  spec.budget.regret_bound = RegretBound{};
  golden.Write("study_auto_bound", StudyToJson(spec));
  for (const char* preset : {"criteria", "quickstart"}) {
    const auto study = LoadStudy(preset, {});
    if (study.ok()) golden.Write(absl::StrCat("study_", preset), StudyToJson(*study));
  }
  const PrunerSpec pruners[] = {
      {},
      {.type = "median", .startup_trials = 1, .min_trials = 4},
      {.type = "percentile", .warmup_steps = 7, .percentile = 33.3},
      {.type = "threshold", .interval_steps = 2, .lower = -1.5, .upper = 3.0},
      {.type = "patient", .lower = 0.5, .patience = 3, .wrapped = "threshold"},
      {.type = "asha", .min_resource = 3, .reduction_factor = 2, .min_early_stopping_rate = 1},
      {.type = "hyperband"},
      {.type = "hyperband", .max_resource = 81, .bootstrap_count = 2},
      {.type = "wilcoxon", .p_threshold = 0.05, .startup_steps = 5},
      {.type = "none"},
  };
  for (const PrunerSpec& pruner : pruners) {
    golden.WriteAndRead(absl::StrCat("pruner_", pruner.type), PrunerToJson(pruner),
                        Through<PrunerSpec>(PrunerFromJson, PrunerToJson));
  }
}

void AddTrials(Golden& golden) {
  const std::pair<const char*, TrialOutcome> outcomes[] = {
      {"completed_default", Completed{}},
      {"completed", Completed{.metrics = {{"loss", kNan}, {"f1", 1.0}}, .model_path = "/best"}},
      {"pruned_default", StoppedByPruner{}},
      {"pruned", StoppedByPruner{.pruner = "median", .step = 2, .metrics = {{"f1", 0.25}}}},
      {"oom_default", OutOfMemory{}},
      {"oom", FullOutOfMemory()},
      {"failed", Failed{.failure_class = FailureClass::kDiverged, .message = "loss is nan"}},
      {"cancelled", Cancelled{.reason = "by hand"}},
  };
  for (const auto& [name, outcome] : outcomes) {
    golden.WriteAndRead(name, OutcomeToJson(outcome),
                        Through<TrialOutcome>(OutcomeFromJson, OutcomeToJson));
  }
  for (const MemoryPlan& plan : {MemoryPlan{}, FullOutOfMemory().plan}) {
    golden.WriteAndRead("plan", PlanToJson(plan), Through<MemoryPlan>(PlanFromJson, PlanToJson));
  }
  for (const MemoryReport& report : {MemoryReport{}, FullMemoryReport()}) {
    golden.WriteAndRead("report", ToJson(report),
                        Through<MemoryReport>(FromJson<MemoryReport>, ToJson<Json>));
  }
  for (const MemoryRecord& record : {MemoryRecord{}, FullMemoryRecord()}) {
    golden.WriteAndRead("record", ToJson(record),
                        Through<MemoryRecord>(FromJson<MemoryRecord>, ToJson<Json>));
  }
  const Measurement measurement = {.step = 3, .epoch = 0.5, .metrics = {{"a", kNan}, {"b", 0.5}}};
  golden.WriteAndRead(
      "measurements", ToJson(std::vector<Measurement>{measurement, {}}),
      Through<std::vector<Measurement>>(FromJson<std::vector<Measurement>>, ToJson<Json>));
  golden.WriteAndRead("worker", ToJson(FullWorkerFacts()),
                      Through<WorkerFacts>(FromJson<WorkerFacts>, ToJson<Json>));
  golden.Write("worker_default", ToJson(WorkerFacts()));
}

template <typename Message>
void AddMessage(const std::string& name, const Message& message,
                std::string (*encode)(const Message&),
                absl::StatusOr<Message> (*decode)(absl::string_view), Golden& golden) {
  golden.WriteAndRead(name, Json::parse(encode(message)),
                      [&](const Json& json) -> absl::StatusOr<Json> {
                        const absl::StatusOr<Message> again = decode(json.dump());
                        if (!again.ok()) return again.status();
                        return Json::parse(encode(*again));
                      });
}

void AddMessages(Golden& golden) {
  const DownMessage down[] = {TrainerJob{}, FullTrainerJob(),
                              StopRequest{.reason = "pruned", .checkpoint = true},
                              ShutdownRequest{}};
  for (const DownMessage& message : down) {
    AddMessage("down", message, EncodeDown, DecodeDown, golden);
  }
  const UpMessage up[] = {
      Hello{.version = 1, .program = "p", .capabilities = {"plan"}, .torch_build = "2.11.0"},
      MeasurementMessage{{.step = 10, .epoch = 0.5, .metrics = {{"macro_f1", kNan}}}},
      FullMemoryRecord(),
      MemoryMessage{.stage = "Trial Start"},
      CheckpointMessage{.kind = "best", .path = "/out/best", .step = 3},
      ProgressMessage{.step = 5, .total_steps = 10, .loss = kNan},
      ProgressMessage{.step = 6, .loss = 0.5, .stop_time = absl::Milliseconds(2500)},
      LogMessage{.level = "warning", .text = "slow\nwith \"quotes\" \xff"},
      AttributesMessage{.attributes = {{"data", "{\"rows\":[1,2.5]}"}, {"who", "\"me\""}}},
      OutcomeMessage{.outcome = Completed{.metrics = {{"loss", 0.5}}},
                     .memory = FullMemoryReport(),
                     .final_plan = {.effective_batch = 32, .micro_batch = 4},
                     .clean = false},
      OutcomeMessage{},
  };
  for (const UpMessage& message : up) AddMessage("up", message, EncodeUp, DecodeUp, golden);
}

// Studies of files are JSON here, which is YAML in one line.
Json FullFile(const Json& pruner) {
  Json file = Json::parse(R"({
    "name": "full",
    "objective": [{"metric": "f1", "direction": "maximize"}],
    "trainer": {"task": "custom", "train": "a", "validation": "b", "epochs": 7, "init": "random",
                "measure_every_steps": 9, "labels": ["x", "y"], "defaults": {"train.warmup": 0.1},
                "command": ["python", "{train.lr}"], "workdir": "there"},
    "budget": {"trials": 3, "wall_clock": "1h30m", "trial_wall_clock": "90s", "no_progress": 4,
               "regret_bound": "auto", "target": 0.5, "failures_in_a_row": 1,
               "failed_share": 0.25},
    "memory": {"policy": "strict", "headroom": "2GiB", "allow_checkpointing": true,
               "allow_lower_precision": true, "relevant": ["train.lr"]},
    "sampler": {"type": "tpe", "seed": 4, "startup_trials": 5, "startup": "sobol"},
    "heavy_models": ["m"],
    "warm_start": ["earlier"],
    "parameters": {
      "train.lr": {"float": [1e-6, 1e-4], "log": true, "default": 1e-5, "model": false},
      "train.batch_size": {"int": [8, 64], "step": 8, "when": {"kind": ["a"]}},
      "kind": {"choices": ["a", "b"]}},
    "constraints": [{"when": {"kind": "a"}, "set": {"train.lr": {"float": [1e-6, 1e-5]}}}]})");
  file["pruner"] = pruner;
  return file;
}

void AddFiles(Golden& golden) {
  const Reading read = [](const Json& json) -> absl::StatusOr<Json> {
    const auto spec = ParseStudyFile(json.dump(), "file", {});
    if (!spec.ok()) return spec.status();
    return StudyToJson(*spec);
  };
  const Json pruners[] = {
      Json::parse(R"({"type": "hyperband", "min_resource": "auto", "max_resource": 9})"),
      Json::parse(R"({"type": "patient", "wrapped": "threshold", "lower": 0.5, "patience": 2})"),
      Json::parse(R"({"type": "median", "startup_trials": 2, "unknown": 3})"),
      Json::parse(R"({"type": "best", "percentile": 2})"),
  };
  for (const Json& pruner : pruners) {
    const auto stored = read(FullFile(pruner));
    golden.Write("file", stored.ok() ? *stored : Json(stored.status().ToString()));
  }
  golden.WriteAndRead("file", FullFile(pruners[0]), read);
  golden.WriteAndRead("file_patient", FullFile(pruners[1])["pruner"],
                      [&](const Json& pruner) { return read(FullFile(pruner)); });
  Json limited = FullFile(pruners[0]);
  limited["budget"].erase("regret_bound");
  limited["constraints"] = Json::parse(R"([{"metric": "ms", "at_least": 0.5, "at_most": 1.5}])");
  golden.WriteAndRead("file_limited", limited["constraints"], [&](const Json& constraints) {
    Json file = limited;
    file["constraints"] = constraints;
    return read(file);
  });
}

TEST(StoredJson, IsTheSameByteForByte) {
  Golden golden;
  AddStudies(golden);
  AddTrials(golden);
  AddMessages(golden);
  AddFiles(golden);
  ExpectGolden("stored_json.txt", golden.text());
}

}  // namespace
}  // namespace hpo
