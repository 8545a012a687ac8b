// Tested by tests/cli/render/text_test.cc.
#include "cli/render/trial_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "cli/client/terminal.h"
#include "cli/render/color.h"
#include "cli/render/table.h"
#include "cli/render/trial_table.h"
#include "cli/render/wording.h"
#include "common/study/outcome_text.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr int kTrialNameColumns = 10;

Bytes UsedBy(const Attempt& attempt) {
  return attempt.memory ? attempt.memory->live_peak : Bytes{};
}

Bytes AllowedFor(const Attempt& attempt) {
  const bool measured = attempt.memory && attempt.memory->limit.count > 0;
  return measured ? attempt.memory->limit : attempt.capacity;
}

// A trainer of the user's own may know of no batch: its plan is then nobody's.
bool HasBatch(const ParamMap& params, const MemoryPlan& plan) {
  return plan.effective_batch > 1 || params.contains("train.batch_size");
}

std::string PlansOf(const Attempt& attempt, const ParamMap& params) {
  if (!HasBatch(params, attempt.plan)) return "-";
  if (!attempt.final_plan || *attempt.final_plan == attempt.plan) return DescribePlan(attempt.plan);
  return absl::StrCat(DescribePlan(attempt.plan), ", then ", DescribePlan(*attempt.final_plan));
}

std::string AttemptTable(const std::vector<Attempt>& attempts, const ParamMap& params, int width,
                         bool colors) {
  Table table({{"ATTEMPT", Align::kRight},
               {"STATE"},
               {"WORKER"},
               {"BATCH = PARTS"},
               {"PREDICTED", Align::kRight},
               {"USED", Align::kRight},
               {"ALLOWED", Align::kRight},
               {"OOMS", Align::kRight},
               {"TIME", Align::kRight},
               {"NOTE"}});
  for (const Attempt& attempt : attempts) {
    table.AddRow({absl::StrCat(attempt.number.value), std::string(Name(attempt.state)),
                  attempt.worker, PlansOf(attempt, params), OrDash(attempt.predicted),
                  OrDash(UsedBy(attempt)), OrDash(AllowedFor(attempt)),
                  attempt.memory ? absl::StrCat(attempt.memory->num_ooms) : "-",
                  TakenText(attempt.started, attempt.ended), attempt.end_note});
  }
  return table.Render(width, colors);
}

// Empty where no attempt has told anything.
std::string StageTable(const std::vector<Attempt>& attempts, int width, bool colors) {
  Table table({{"ATTEMPT", Align::kRight},
               {"MEMORY AT"},
               {"STEP", Align::kRight},
               {"ALLOCATED", Align::kRight},
               {"CHANGE", Align::kRight},
               {"RESERVED", Align::kRight},
               {"FREE", Align::kRight},
               {"TOTAL", Align::kRight},
               {"PEAK", Align::kRight},
               {"HOST", Align::kRight},
               {"NOTE"}});
  bool any = false;
  for (const Attempt& attempt : attempts) {
    for (size_t i = 0; i < attempt.memory_records.size(); ++i) {
      const MemoryRecord& record = attempt.memory_records[i];
      table.AddRow({absl::StrCat(attempt.number.value), record.stage, absl::StrCat(record.step),
                    FormatBytes(record.allocated), ChangeText(AllocatedChange(attempt, i)),
                    OrDash(record.reserved), OrDash(record.free), OrDash(record.total),
                    OrDash(record.peak), OrDash(record.resident), DescribeRecord(record)});
      any = true;
    }
  }
  return any ? absl::StrCat("\n", table.Render(width, colors)) : "";
}

// What attempts left behind, or kept growing.
std::string LeakLines(const std::vector<Attempt>& attempts) {
  std::string text;
  for (const Attempt& attempt : attempts) {
    if (!attempt.memory || attempt.memory->growth <= Bytes{}) continue;
    absl::StrAppend(&text, "leak      attempt ", attempt.number.value, ": ",
                    FormatBytes(attempt.memory->growth), " did not come back, from stage '",
                    Printable(attempt.memory->growth_stage), "'\n");
  }
  return text;
}

std::string MeasurementTable(const std::vector<Measurement>& measurements, int width, bool colors) {
  Table table({{"STEP", Align::kRight}, {"EPOCH", Align::kRight}, {"METRICS"}});
  for (const Measurement& measurement : measurements) {
    std::string metrics;
    for (const auto& [name, value] : measurement.metrics) {
      absl::StrAppend(&metrics, metrics.empty() ? "" : "  ", name, " ", ShortNumber(value));
    }
    table.AddRow({absl::StrCat(measurement.step), ShortNumber(measurement.epoch), metrics});
  }
  return table.Render(width, colors);
}

// Text of several lines, as a traceback is: each made printable on its own.
std::string Indented(absl::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    absl::StrAppend(&lines, "  ", Printable(text.substr(0, end)), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Its first line; what follows stands below, indented.
std::string WithLinesBelow(absl::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  return absl::StrCat(Printable(text.substr(0, end)), "\n",
                      Indented(text.substr(std::min(end + 1, text.size()))));
}

std::string OomText(const OutOfMemory& oom, const ParamMap& params) {
  std::string text = absl::StrCat("\nOut of memory (", Name(oom.kind), ")\n");
  const std::pair<const char*, std::string> lines[] = {
      {"phase", oom.phase.empty() ? "-" : absl::StrCat(oom.phase, ", step ", oom.step)},
      {"requested", OrDash(oom.requested)},
      {"peak", OrDash(oom.peak)},
      {"allowed", OrDash(oom.limit)},
      {"predicted", OrDash(oom.needed)},
      {"batch", HasBatch(params, oom.plan) ? DescribePlan(oom.plan) : "-"},
      {"oom_config", OomConfig(params).dump()},
      {"error", oom.message.empty() ? "-" : oom.message},
  };
  for (const auto& [name, value] : lines) {
    absl::StrAppend(&text, "  ", name, std::string(12 - std::string(name).size(), ' '),
                    WithLinesBelow(value));
  }
  return absl::StrCat(text, Indented(oom.traceback));
}

std::string ParamLines(const ParamMap& params) {
  std::string text;
  for (const auto& [name, value] : params) {
    absl::StrAppend(&text, "  ", Printable(name), "=", Printable(ShowParam(value)), "\n");
  }
  return text;
}

}  // namespace

std::string TrialText(const TrialView& view, const std::vector<MetricConstraint>& constraints,
                      int width, bool colors) {
  const Trial& trial = view.trial;
  std::string text =
      absl::StrCat("trial     ", Hash(trial.id.number), " of ", Printable(trial.id.study), ": ",
                   Colored(DescribeState(trial), ColorOfState(DescribeState(trial)), colors),
                   trial.demonstration ? ", a demonstration" : "", "\n");
  if (trial.outcome)
    absl::StrAppend(&text, "outcome   ", WithLinesBelow(WholeOutcome(*trial.outcome)));
  if (trial.value) absl::StrAppend(&text, "value     ", ShortNumber(*trial.value), "\n");
  for (const MetricConstraint& constraint : constraints) {
    const std::string excess = DescribeExcess(trial, constraint);
    if (!excess.empty()) absl::StrAppend(&text, "violates  ", Printable(excess), "\n");
  }
  if (!view.sampler.empty()) {
    absl::StrAppend(&text, "proposed  by ", Printable(view.sampler), "\n");
  }
  if (!trial.origin.empty()) {
    absl::StrAppend(&text, "imported  from ", Printable(trial.origin),
                    trial.budgeted ? "" : ", outside the budget", "\n");
  }
  if (trial.min_capacity.count > 0) {
    absl::StrAppend(&text, "waits for a worker with more than ", FormatBytes(trial.min_capacity),
                    "\n");
  }
  if (trial.outcome) {
    const Completed* completed = std::get_if<Completed>(&*trial.outcome);
    if (completed != nullptr && !completed->model_path.empty()) {
      absl::StrAppend(&text, "model     ", Printable(completed->model_path), "\n");
    }
  }
  absl::StrAppend(&text, AttributeLines(trial.attributes, kTrialNameColumns), "created   ",
                  LocalTime(trial.created), ", started ", LocalTime(trial.started), ", ended ",
                  LocalTime(trial.ended), "\n\nParameters\n", ParamLines(trial.params));
  if (!trial.attempts.empty()) {
    absl::StrAppend(&text, "\n", AttemptTable(trial.attempts, trial.params, width, colors),
                    StageTable(trial.attempts, width, colors), LeakLines(trial.attempts));
  }
  if (!view.measurements.empty()) {
    absl::StrAppend(&text, "\n", MeasurementTable(view.measurements, width, colors));
  }
  if (!trial.outcome) return text;
  const OutOfMemory* oom = std::get_if<OutOfMemory>(&*trial.outcome);
  return oom == nullptr ? text : absl::StrCat(text, OomText(*oom, trial.params));
}

std::string BestText(const std::vector<Trial>& trials, const StudyStatus& study, int width,
                     bool colors) {
  const Trial& best = trials.front();
  const char* infeasible = "no trial keeps the constraints yet; nearest to it:\n";
  const std::string note = best.violation > 0.0 ? infeasible : "";
  const std::vector<Objective>& objectives = study.spec.objectives;
  if (trials.size() != 1 || objectives.size() > 1) {
    return absl::StrCat(note, TrialTable(trials, study, width, colors));
  }
  const std::string metric = objectives.empty() ? "value" : objectives.front().metric;
  std::string text =
      absl::StrCat(note, "best trial of ", Printable(study.spec.name), ": ", Hash(best.id.number),
                   ", ", Printable(metric), " ", OrDash(best.value), "\n", ParamLines(best.params));
  const Completed* completed = best.outcome ? std::get_if<Completed>(&*best.outcome) : nullptr;
  if (completed != nullptr && !completed->model_path.empty()) {
    absl::StrAppend(&text, "model folder: ", Printable(completed->model_path), "\n");
  }
  return text;
}

}  // namespace hpo::cli
