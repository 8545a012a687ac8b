#include "cli/memory/memory_explain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/client/terminal.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

const OutOfMemory* OomOf(const Trial& trial) {
  return trial.outcome ? std::get_if<OutOfMemory>(&*trial.outcome) : nullptr;
}

std::string Share(double fraction) { return absl::StrFormat("%.1f %%", 100.0 * fraction); }

// ---- One attempt ----

// What it is compared with: on a card the process' share, else what it reserved or held.
void SetMeasured(const MemoryReport& report, AttemptExplanation& attempt) {
  const std::pair<const char*, Bytes> candidates[] = {{"device", report.device_peak},
                                                      {"reserved", report.reserved_peak},
                                                      {"live", report.live_peak}};
  for (const auto& [name, size] : candidates) {
    if (size <= Bytes{}) continue;
    attempt.measured = name;
    attempt.used = size;
    return;
  }
}

std::string LessonOfOom(const OutOfMemory& oom, Bytes allowed) {
  switch (oom.kind) {
    case OomKind::kConfiguration:
    case OomKind::kLatePeak:
      return absl::StrCat("a bound: micro-batch ", oom.plan.micro_batch, " needs more than ",
                          OrDash(oom.limit.count > 0 ? oom.limit : allowed));
    case OomKind::kDirtyDevice:
      return "nothing: others held the memory";
    case OomKind::kFragmentation:
      return "nothing: the free memory was fragmented";
    case OomKind::kHost:
      return "nothing: it was the host's memory";
  }
  return "nothing";
}

std::string LessonOf(const Trial& trial, const Attempt& attempt, bool last,
                     const AttemptExplanation& explained) {
  if (attempt.state != AttemptState::kFinished) {
    return absl::StrCat("nothing: ",
                        attempt.end_note.empty() ? "it has not finished" : attempt.end_note);
  }
  if (!last || !trial.outcome) return "nothing: it ended without an outcome";
  if (const OutOfMemory* const oom = OomOf(trial)) return LessonOfOom(*oom, explained.allowed);
  if (!std::holds_alternative<Completed>(*trial.outcome)) {
    return "nothing: it may not have met its peak";
  }
  if (explained.num_ooms > 0) {
    return absl::StrCat("a bound: micro-batch ", attempt.plan.micro_batch, " needs more than ",
                        OrDash(explained.allowed));
  }
  if (!explained.error) return "nothing: there is no estimate, or no measurement, to compare";
  return absl::StrCat("a measurement: the estimate was ", Share(std::abs(*explained.error)),
                      *explained.error > 0 ? " too low" : " too high");
}

AttemptExplanation ExplainAttempt(const Trial& trial, const Attempt& attempt, bool last) {
  AttemptExplanation explained{.number = attempt.number,
                               .worker = attempt.worker,
                               .plan = attempt.final_plan.value_or(attempt.plan),
                               .first_plan = attempt.plan,
                               .predicted = attempt.predicted,
                               .allowed = attempt.capacity};
  explained.replanned = explained.plan != explained.first_plan;
  if (attempt.memory.has_value()) {
    SetMeasured(*attempt.memory, explained);
    if (attempt.memory->limit.count > 0) explained.allowed = attempt.memory->limit;
    explained.peak_phase = attempt.memory->peak_phase;
    explained.num_ooms = attempt.memory->num_ooms;
  }
  if (!explained.replanned && explained.used.count > 0 && explained.predicted.count > 0) {
    explained.error = static_cast<double>((explained.used - explained.predicted).count) /
                      static_cast<double>(explained.predicted.count);
  }
  explained.lesson = LessonOf(trial, attempt, last, explained);
  return explained;
}

// ---- The trial ----

const char* Meaning(OomKind kind) {
  switch (kind) {
    case OomKind::kConfiguration:
      return "the configuration is too big for this card";
    case OomKind::kDirtyDevice:
      return "other processes held the card's memory; the configuration is not to blame";
    case OomKind::kFragmentation:
      return "enough was free, but fragmented; the configuration is not to blame";
    case OomKind::kLatePeak:
      return "a longer batch, or evaluation, came after steps that fit";
    case OomKind::kHost:
      return "the host ran out of memory, not the card";
  }
  return "";
}

std::string OomVerdict(const OutOfMemory& oom) {
  if (oom.predicted) {
    return absl::StrCat("was not started: needs ", OrDash(oom.needed), ", allowed ",
                        OrDash(oom.limit), "; nothing is known of how well it learns");
  }
  Trial trial;
  trial.outcome = oom;
  return absl::StrCat(DescribeEnd(trial), ": ", Meaning(oom.kind));
}

std::string FitVerdict(const AttemptExplanation& attempt) {
  if (attempt.used <= Bytes{}) return "it ran; the trainer told no bytes";
  std::string text = absl::StrCat("it fit: ", FormatBytes(attempt.used));
  if (attempt.allowed.count > 0) {
    const double spare =
        1.0 - static_cast<double>(attempt.used.count) / static_cast<double>(attempt.allowed.count);
    absl::StrAppend(&text, " of ", FormatBytes(attempt.allowed), " (", Share(spare), " to spare)");
  }
  if (!attempt.peak_phase.empty()) absl::StrAppend(&text, ", peak in ", attempt.peak_phase);
  if (attempt.num_ooms > 0) {
    absl::StrAppend(&text, ", after ", attempt.num_ooms, " out-of-memory errors it recovered from");
  }
  return text;
}

std::string VerdictOf(const Trial& trial, const std::vector<AttemptExplanation>& attempts) {
  if (const OutOfMemory* const oom = OomOf(trial)) return OomVerdict(*oom);
  if (!trial.outcome) return "it has not ended yet";
  if (attempts.empty()) return "it was never started";
  if (std::holds_alternative<Completed>(*trial.outcome)) return FitVerdict(attempts.back());
  return absl::StrCat("memory did not end it: ", DescribeEnd(trial));
}

Json OrNull(Bytes size) { return size.count > 0 ? Json(size.count) : Json(nullptr); }

}  // namespace

TrialExplanation ExplainTrial(const Trial& trial) {
  TrialExplanation explanation{.number = trial.id.number, .state = DescribeState(trial)};
  for (const Attempt& attempt : trial.attempts) {
    const bool last = &attempt == &trial.attempts.back();
    explanation.attempts.push_back(ExplainAttempt(trial, attempt, last));
  }
  explanation.verdict = VerdictOf(trial, explanation.attempts);
  return explanation;
}

Json ExplanationJson(const TrialExplanation& explanation) {
  Json attempts = Json::array();
  for (const AttemptExplanation& attempt : explanation.attempts) {
    attempts.push_back({{"attempt", attempt.number.value},
                        {"worker", attempt.worker},
                        {"effective_batch", attempt.plan.effective_batch},
                        {"micro_batch", attempt.plan.micro_batch},
                        {"first_micro_batch", attempt.first_plan.micro_batch},
                        {"replanned", attempt.replanned},
                        {"predicted_bytes", OrNull(attempt.predicted)},
                        {"used_bytes", OrNull(attempt.used)},
                        {"measured", attempt.measured},
                        {"allowed_bytes", OrNull(attempt.allowed)},
                        {"peak_phase", attempt.peak_phase},
                        {"num_ooms", attempt.num_ooms},
                        {"error", attempt.error ? Json(*attempt.error) : Json(nullptr)},
                        {"lesson", attempt.lesson}});
  }
  return {{"trial", explanation.number.value},
          {"state", explanation.state},
          {"verdict", explanation.verdict},
          {"attempts", std::move(attempts)}};
}

std::string ExplanationText(const TrialExplanation& explanation, int width) {
  std::string text = absl::StrCat("trial ", Hash(explanation.number), " ", explanation.state, ": ",
                                  Printable(explanation.verdict), "\n");
  if (explanation.attempts.empty()) return text;
  Table table({{"ATTEMPT", Align::kRight},
               {"WORKER"},
               {"BATCH = PARTS"},
               {"PREDICTED", Align::kRight},
               {"USED", Align::kRight},
               {"ERROR", Align::kRight},
               {"ALLOWED", Align::kRight},
               {"TAUGHT"}});
  for (const AttemptExplanation& attempt : explanation.attempts) {
    std::string used = OrDash(attempt.used);
    if (!attempt.measured.empty()) absl::StrAppend(&used, " ", attempt.measured);
    // What was predicted and what it taught is of the plan that it began with.
    std::string plans = DescribePlan(attempt.first_plan);
    std::string predicted = OrDash(attempt.predicted);
    if (attempt.replanned) {
      absl::StrAppend(&plans, ", then ", DescribePlan(attempt.plan));
      if (attempt.predicted > Bytes{}) absl::StrAppend(&predicted, " for the first");
    }
    table.AddRow({absl::StrCat(attempt.number.value), attempt.worker, plans, predicted, used,
                  attempt.error ? Share(*attempt.error) : "-", OrDash(attempt.allowed),
                  attempt.lesson});
  }
  return absl::StrCat(text, "\n", table.Render(width));
}

absl::Status ExplainTrialMemory(Session& session, TrialNumber number) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  HPO_ASSIGN_OR_RETURN(const TrialView view,
                       session.client.trials().GetTrial(study.spec.name, number));
  const TrialExplanation explanation = ExplainTrial(view.trial);
  if (session.json) {
    PrintJson(ExplanationJson(explanation), session.out);
  } else {
    session.out << ExplanationText(explanation, session.terminal.columns);
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
