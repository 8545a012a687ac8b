#include "cli/watch.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";

}  // namespace

void WatchDisplay::Show(const StudyStatus& study) {
  if (study.counts.running == 0) running_.clear();
  if (study.waiting_for != waiting_for_) {
    waiting_for_ = study.waiting_for;
    if (!waiting_for_.empty()) PrintLine(absl::StrCat("waits: ", Printable(waiting_for_)));
  }
  Redraw(study);
}

void WatchDisplay::Show(const TrialChanged& change, const StudyStatus& study) {
  const Trial& trial = change.trial;
  if (trial.state == TrialState::kRunning) {
    running_[trial.id.number] = trial.last_measurement ? trial.last_measurement->step : 0;
  } else {
    running_.erase(trial.id.number);
  }
  const bool worth_a_line =
      change.kind == "finished" || change.kind == "replanned" || change.kind == "requeued";
  if (change.kind == "finished") {
    PrintLine(FinishedLine(trial, study));
  } else if (worth_a_line) {
    PrintLine(absl::StrCat("trial ", trial.id.number.value, " ", change.kind));
  }
  Show(study);
}

void WatchDisplay::Redraw(const StudyStatus& study) {
  if (!terminal_.interactive) return;
  const std::string line = ProgressLine(study, running_);
  const int columns = terminal_.columns > 1 ? terminal_.columns - 1 : 0;
  out_ << kEraseLine << (columns > 0 ? FitTo(line, columns) : line) << std::flush;
  drawn_ = true;
}

void WatchDisplay::PrintLine(const std::string& line) {
  if (drawn_) out_ << kEraseLine;
  drawn_ = false;
  out_ << line << std::endl;
}

void WatchDisplay::Close() {
  if (drawn_) out_ << std::endl;
  drawn_ = false;
}

absl::StatusOr<StudyStatus> Watch(Client& client, const WatchOptions& options,
                                  WatchDisplay& display) {
  HPO_ASSIGN_OR_RETURN(StudyStatus study, client.GetStudy(options.study));
  const auto is_over = [&] { return options.until_finished && study.finished; };
  absl::Status broken;
  const auto on_event = [&](const WatchEvent& event) {
    // A change says what happened to its trial; the counts come with the study.
    absl::StatusOr<StudyStatus> now = client.GetStudy(study.spec.name);
    if (!now.ok()) {
      broken = now.status();
      return false;
    }
    study = *std::move(now);
    if (const TrialChanged* change = std::get_if<TrialChanged>(&event)) {
      display.Show(*change, study);
    } else {
      display.Show(study);
    }
    return !is_over();
  };
  while (!is_over()) {
    broken = absl::OkStatus();
    const absl::Status ended = client.Watch(study.spec.name, on_event);
    if (is_over()) break;
    absl::Status reason = broken.ok() ? ended : broken;
    if (!reason.ok() && !absl::IsUnavailable(reason)) return reason;
    if (!client.WaitUntilReachable(options.patience)) {
      display.Close();
      return reason.ok() ? client.GetStudy(study.spec.name) : reason;
    }
  }
  display.Close();
  return study;
}

}  // namespace hpo
