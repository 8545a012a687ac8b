#include "cli/commands/studies/watch.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/render/json.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kEraseLine[] = "\r\x1b[K";

// "trial 3 met an out-of-memory error: goes on with batch 64 = 2 x 32 in place of 64 = 1 x 64"
std::string ReplannedLine(const std::string& name, const Trial& trial) {
  const std::string met = name + " met an out-of-memory error: goes on with ";
  if (trial.attempts.empty() || !trial.attempts.back().final_plan) {
    return met + "a smaller plan for the same batch";
  }
  const Attempt& attempt = trial.attempts.back();
  return absl::StrCat(met, "batch ", DescribePlan(*attempt.final_plan), " in place of ",
                      DescribePlan(attempt.plan));
}

}  // namespace

void WatchDisplay::Show(const StudyStatus& study) {
  absl::MutexLock lock(&mutex_);
  ShowLocked(study);
}

void WatchDisplay::ShowLocked(const StudyStatus& study) {
  if (study.counts.running == 0) running_.clear();
  if (study.waiting_for != waiting_for_) {
    waiting_for_ = study.waiting_for;
    const char* what = study.finished ? "ended: " : "waits: ";
    if (!waiting_for_.empty()) PrintLine(absl::StrCat(what, Printable(waiting_for_)));
  }
  Redraw(ProgressLine(study, running_));
}

void WatchDisplay::Show(const TrialEvent& change, const StudyStatus& study) {
  absl::MutexLock lock(&mutex_);
  const Trial& trial = change.trial;
  if (trial.state == TrialState::kRunning) {
    running_[trial.id.number] = trial.last_measurement ? trial.last_measurement->step : 0;
  } else {
    running_.erase(trial.id.number);
  }
  const std::string name = absl::StrCat("trial ", trial.id.number.value);
  if (change.kind == "finished") {
    PrintLine(FinishedLine(trial, study, terminal_.colors));
  } else if (change.kind == "replanned") {
    PrintLine(ReplannedLine(name, trial));
  } else if (change.kind == "preempt_ordered") {
    PrintLine(name + " will be given back by its worker");
  } else if (change.kind == "stop_ordered") {
    PrintLine(name + " will be ended by its worker");
  } else if (change.kind == "requeued") {
    PrintLine(name + " runs again");
  }
  ShowLocked(study);
}

void WatchDisplay::Remind(const std::string& line) {
  absl::MutexLock lock(&mutex_);
  if (terminal_.interactive) return Redraw(line);
  out_ << line << std::endl;
}

void WatchDisplay::Say(const std::string& line) {
  absl::MutexLock lock(&mutex_);
  PrintLine(line);
}

void WatchDisplay::Redraw(const std::string& line) {
  if (!terminal_.interactive) return;
  const int columns = terminal_.columns > 1 ? terminal_.columns - 1 : 0;
  out_ << kEraseLine << (columns > 0 ? FitTo(line, columns) : line) << std::flush;
  drawn_ = true;
}

void WatchDisplay::PrintLine(const std::string& line) {
  if (drawn_) out_ << kEraseLine;
  drawn_ = false;
  out_ << line << std::endl;
  if (said_) said_();
}

void WatchDisplay::Close() {
  absl::MutexLock lock(&mutex_);
  if (drawn_) out_ << std::endl;
  drawn_ = false;
}

void WatchLines::Show(const StudyStatus& study) {
  absl::MutexLock lock(&mutex_);
  Json status = StudyJson(study);
  std::string text = status.dump();
  if (text == shown_) return;
  shown_ = std::move(text);
  Print("study", study, "status", std::move(status));
}

void WatchLines::Show(const TrialEvent& change, const StudyStatus& study) {
  absl::MutexLock lock(&mutex_);
  Print(change.kind, study, "trial", TrialJson(change.trial));
}

void WatchLines::End(const StudyStatus& study) {
  absl::MutexLock lock(&mutex_);
  Print("end", study, "status", StudyJson(study));
}

void WatchLines::Print(const std::string& event, const StudyStatus& study, const char* key,
                       Json value) {
  const Json json = {{"event", event}, {"study", study.spec.name}, {key, std::move(value)}};
  out_ << json.dump() << std::endl;
}

namespace {

// One study's watch over any number of connections. `seen` is the last change that was shown: a new
// connection goes on from there, so that what happened meanwhile is shown too.
class StudyWatch {
 public:
  StudyWatch(Client& client, const WatchOptions& options, WatchListener& listener,
             StudyStatus study)
      : client_(client),
        options_(options),
        listener_(listener),
        study_(std::move(study)),
        seen_(options.after_sequence.value_or(study_.sequence)) {
    NoteBlocked();
  }

  const StudyStatus& study() const { return study_; }

  bool IsOver() const {
    if (options_.output != nullptr && !options_.output->good()) return true;
    const bool blocked = blocked_since_ && options_.until_blocked_for &&
                         absl::Now() - *blocked_since_ >= *options_.until_blocked_for;
    const bool ends = (options_.until_finished && study_.finished) || blocked;
    return ends && seen_ >= study_.sequence;
  }

  // Until the study is over (OK), the server ends the watch (OK) or is away (Unavailable).
  absl::Status FollowOneConnection() {
    absl::Status broken;
    const absl::Status ended =
        client_.studies().Watch(study_.spec.name, seen_, [&](const WatchEvent& event) {
          broken = Take(event);
          return broken.ok() && !IsOver();
        });
    return broken.ok() ? ended : broken;
  }

 private:
  absl::Status Take(const WatchEvent& event) {
    // A change says what happened to its trial; the counts come with the study.
    HPO_RETURN_IF_ERROR(ReadStudy());
    if (const TrialEvent* change = std::get_if<TrialEvent>(&event)) {
      seen_ = std::max(seen_, change->sequence);
      listener_.Show(*change, study_);
      return absl::OkStatus();
    }
    if (const Bookmark* bookmark = std::get_if<Bookmark>(&event)) {
      seen_ = std::max(seen_, bookmark->value);
    }
    listener_.Show(study_);
    return absl::OkStatus();
  }

  void NoteBlocked() {
    if (!study_.blocked) {
      blocked_since_.reset();
    } else if (!blocked_since_) {
      blocked_since_ = absl::Now();
    }
  }

  // The front is read again only where another trial has completed.
  absl::Status ReadStudy() {
    StudyStatus before = std::exchange(study_, {});
    absl::StatusOr<StudyStatus> now = client_.studies().GetStudy(before.spec.name);
    if (!now.ok()) {
      study_ = std::move(before);
      return now.status();
    }
    study_ = *std::move(now);
    NoteBlocked();
    study_.front = std::move(before.front);
    const bool is_current = study_.counts.completed == before.counts.completed;
    return is_current && !study_.front.empty() ? absl::OkStatus()
                                               : AddFront(client_.trials(), study_);
  }

  Client& client_;
  const WatchOptions options_;
  WatchListener& listener_;
  StudyStatus study_;
  int64_t seen_;
  std::optional<absl::Time> blocked_since_;
};

}  // namespace

absl::StatusOr<StudyStatus> Watch(Client& client, const WatchOptions& options,
                                  WatchListener& listener) {
  HPO_ASSIGN_OR_RETURN(StudyStatus found, client.studies().GetStudy(options.study));
  HPO_RETURN_IF_ERROR(AddFront(client.trials(), found));
  StudyWatch watch(client, options, listener, std::move(found));
  absl::Status status;
  while (!watch.IsOver()) {
    status = watch.FollowOneConnection();
    // Cancelled: by a server that ended and waited no longer.
    const bool may_come_back =
        status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status);
    if (!may_come_back || watch.IsOver()) break;
    if (client.WaitUntilReachable(options.patience)) continue;
    const absl::Status now = client.studies().GetStudy(watch.study().spec.name).status();
    if (!now.ok()) status = now;
    break;
  }
  listener.Close();
  if (!watch.IsOver() && !status.ok()) return status;
  return watch.study();
}

}  // namespace hpo::cli
