// What each `hpo` command does, once its command line is read.
//
// Every command returns its exit status' cause: OK, or the error that is printed as one line.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/render/terminal.h"

namespace hpo {

// What all commands share. `client` and `out` outlive it.
struct Session {
  Client& client;
  std::ostream& out;
  Terminal terminal;
  bool json = false;
  bool yaml = false;  // of hpo best alone
  std::string study;  // empty: the only one
};

absl::Status ShowStatus(Session& session);

// `tags`: only studies that have all of them.
absl::Status ListStudies(Session& session, const std::vector<std::string>& tags);

struct DeleteOptions {
  std::string archive;  // where to; empty: STUDY.hpo-study in the present folder
  bool no_archive = false;
};
// Archives the study and deletes it; nothing is deleted that is not archived whole.
absl::Status DeleteStudy(Session& session, const DeleteOptions& options);
// Adds the study of an archive, called `name` where that is not empty.
absl::Status RestoreStudy(Session& session, const std::string& file, const std::string& name);

struct EditOptions {
  std::string file;              // the study's changed file; or
  std::vector<std::string> set;  // "NAME=LOW..HIGH", "NAME=CHOICE,CHOICE"
  bool dry_run = false;          // only shows what would come of it
};
// Changes ranges and choices; shows them before and after.
absl::Status EditStudy(Session& session, const EditOptions& options);

struct AnnotateOptions {
  std::optional<TrialNumber> trial;  // nullopt: the study itself
  std::optional<std::string> note;   // empty: there is none any more
  std::vector<std::string> tags;
  std::vector<std::string> untags;
  std::vector<std::string> set;  // "key=value": JSON, or else a text
  std::vector<std::string> unset;
};
// Changes what is noted of a study or a trial, and shows what there is then.
//   InvalidArgument  nothing to change, or what the server does not take
absl::Status ChangeAttributes(Session& session, const AnnotateOptions& options);
absl::Status ShowStudy(Session& session);
// At least one of the change's fields is set.
absl::Status ExtendStudy(Session& session, const StudyChange& change);
// Pauses or stops the study, or has it go on. `stop_running_trials`: only with kStop.
absl::Status OrderStudy(Session& session, StudyOrder order, bool stop_running_trials);
struct StudyFileOptions {
  std::string path;  // or a preset's name
  std::string name;  // over the file's; empty: that one
};
// Checks the file here, and where a server is there also against the study of that name.
absl::Status ValidateStudyFile(Session& session, const StudyFileOptions& file);
// Sends the file's text to the server.
absl::Status CreateStudy(Session& session, const StudyFileOptions& file);
// The study files that are compiled in: one line each, or with a name the file. Asks no server.
//   NotFound  no preset has that name
absl::Status ShowPresets(Session& session, const std::string& name);

struct ImportanceOptions {
  std::string method = "ped-anova";  // or "fanova": common/interop/importance/importance.h
  std::string metric;                // of an objective; empty: the first
};
//   FailedPrecondition  too few completed trials, or nothing that moves the metric
absl::Status ShowImportance(Session& session, const ImportanceOptions& options);

struct TrialListOptions {
  std::vector<std::string> states;  // names, any case; empty: all
  int limit = 50;                   // trials a page
  int page = 1;
  bool newest_first = false;
  std::string sort;                // cli/commands/trial_selection.h
  std::vector<std::string> where;  // likewise
  std::vector<std::string> tags;   // only trials that have all of them
};
absl::Status ListTrials(Session& session, const TrialListOptions& options);
absl::Status ShowTrial(Session& session, TrialNumber number);

struct TrialLogOptions {
  TrialNumber number;
  std::optional<int64_t> attempt;  // nullopt: the last
  std::string state_dir;           // the workers'; empty: their default
};
// What the trial's program printed, where its worker's files are on this machine.
//   NotFound  no such trial or attempt, or its worker's files are not here
absl::Status ShowTrialLog(Session& session, const TrialLogOptions& options);

// Its worker saves and gives it back; it is queued again.
//   FailedPrecondition  no worker runs it
absl::Status PreemptTrial(Session& session, TrialNumber number);

// Queues their configurations again; `numbers` empty: of every trial that failed.
//   FailedPrecondition  one that did not fail, and that memory did not end
absl::Status RetryTrials(Session& session, const std::vector<int64_t>& numbers);

// A running trial ends as CANCELLED, at its worker's next heartbeat; a queued one at once.
//   FailedPrecondition  it does not run, is not queued
absl::Status StopTrial(Session& session, TrialNumber number);
absl::Status CancelTrial(Session& session, TrialNumber number);

// `count` left out: the best one, of several objectives the whole Pareto front.
//   NotFound  no trial has completed yet
absl::Status ShowBest(Session& session, std::optional<int> count, const std::string& export_to);

struct EnqueueOptions {
  std::vector<std::string> params;  // "name=value"
  bool demonstration = false;
  bool skip_admission = false;
  int64_t micro_batch = 0;
};
absl::Status Enqueue(Session& session, const EnqueueOptions& options);

struct MemoryOptions {
  std::vector<std::string> params;
  std::string worker;
  std::string limit;  // a size, or empty
};
// Whether it fits.
absl::StatusOr<bool> EstimateMemory(Session& session, const MemoryOptions& options);

// The study when the watch ended.
absl::StatusOr<StudyStatus> WatchStudy(Session& session, bool until_finished);

}  // namespace hpo
