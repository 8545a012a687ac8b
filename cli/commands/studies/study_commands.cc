// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/studies/study_commands.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/client/advice.h"
#include "cli/commands/studies/watch.h"
#include "cli/commands/trials/trial_selection.h"
#include "cli/render/json.h"
#include "cli/render/study_text.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "common/study/outcome_text.h"
#include "common/study_file/study_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

Json StudiesJson(const std::vector<StudyStatus>& studies) {
  Json json = Json::array();
  for (const StudyStatus& study : studies) json.push_back(StudyJson(study));
  return json;
}

// What keeps the server from its work; empty: nothing.
std::string ServerText(const ServerStatus& server) {
  std::string text;
  if (!server.trouble.empty()) {
    absl::StrAppend(&text, "trouble     ", Printable(server.trouble),
                    "\n            nothing is stored until this is over; workers wait\n");
  }
  for (const std::string& found : server.damage) {
    absl::StrAppend(&text, "damage      ", Printable(found), "\n");
  }
  if (!server.damage.empty()) {
    absl::StrAppend(&text,
                    "            the database is damaged; stop the server and run: hpo admin ",
                    "restore BACKUP --db ", Printable(server.database), "\n");
  }
  return text;
}

// With commands that work as they stand.
std::string TextOf(const Session& session, const StudyStatus& study) {
  const std::string text = StudyText(study, session.terminal.columns, session.terminal.colors);
  return session.database.empty()
             ? WithServer(text, session.client.advised_address())
             : absl::StrReplaceAll(
                   text, {{"hpo best ",
                           absl::StrCat("hpo --db ", ShellWord(session.database), " best ")}});
}

// The line of the name is replaced, so that errors keep their lines.
absl::StatusOr<StudySource> ReadStudySource(const StudyFileOptions& file) {
  HPO_ASSIGN_OR_RETURN(StudySource text, FindStudySource(file.path));
  if (file.name.empty()) return text;
  std::vector<std::string> lines = absl::StrSplit(text.yaml, '\n');
  const auto named = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StartsWith(line, "name:");
  });
  if (named == lines.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.origin, ": --name: expected a line that begins with 'name:', got none"));
  }
  *named = absl::StrCat("name: ", Json(file.name).dump());
  text.yaml = absl::StrJoin(lines, "\n");
  return text;
}

}  // namespace

absl::Status ShowStatus(Session& session) {
  std::vector<StudyStatus> studies;
  if (session.study.empty()) {
    HPO_ASSIGN_OR_RETURN(studies, session.client.studies().ListStudies());
  } else {
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), session.client.studies().GetStudy(session.study));
  }
  for (StudyStatus& study : studies) HPO_RETURN_IF_ERROR(AddFront(session.client.trials(), study));
  HPO_ASSIGN_OR_RETURN(ServerStatus server, session.client.GetServer());
  const bool reads_file = !session.database.empty();
  if (reads_file) server.database = session.database;
  if (session.json) {
    const Json json = {{"server", reads_file ? Json(nullptr) : Json(session.client.address())},
                       {"database", server.database},
                       {"trouble", server.trouble},
                       {"damage", server.damage},
                       {"studies", StudiesJson(studies)}};
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  session.out << (reads_file ? absl::StrCat("database ", Printable(server.database),
                                            ", read without a server")
                             : absl::StrCat("hpo-server at ", session.client.address()))
              << "\n"
              << ServerText(server);
  for (const StudyStatus& study : studies) {
    session.out << "\n" << TextOf(session, study);
  }
  if (studies.empty()) {
    session.out << WithServer("no studies; add one with: hpo study create FILE\n",
                              session.database.empty() ? session.client.advised_address() : "");
  }
  return absl::OkStatus();
}

absl::Status ListStudies(Session& session, const std::vector<std::string>& tags) {
  HPO_ASSIGN_OR_RETURN(std::vector<StudyStatus> studies, session.client.studies().ListStudies());
  std::erase_if(studies,
                [&](const StudyStatus& study) { return !HasTags(study.attributes, tags); });
  for (StudyStatus& study : studies) HPO_RETURN_IF_ERROR(AddFront(session.client.trials(), study));
  if (session.json) {
    PrintJson(StudiesJson(studies), session.out);
  } else {
    session.out << RenderStudyTable(studies, session.terminal.columns, session.terminal.colors);
  }
  return absl::OkStatus();
}

absl::Status ShowStudy(Session& session) {
  HPO_ASSIGN_OR_RETURN(StudyStatus study, session.client.studies().GetStudy(session.study));
  HPO_RETURN_IF_ERROR(AddFront(session.client.trials(), study));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  session.out << TextOf(session, study) << "\n"
              << SpaceTable(study.spec.space, session.terminal.columns, session.terminal.colors);
  return absl::OkStatus();
}

absl::Status ExtendStudy(Session& session, const StudyUpdate& update) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study,
                       session.client.studies().UpdateStudy(session.study, update));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  const Budget& budget = study.spec.budget;
  const std::string target =
      budget.target ? absl::StrCat(", target ", ShortNumber(*budget.target)) : "";
  session.out << study.spec.name << ": budget of "
              << (budget.trials ? absl::StrCat(*budget.trials, " trials") : "any number of trials")
              << (budget.wall_clock ? absl::StrCat(" and ", ShortDuration(*budget.wall_clock)) : "")
              << target << ", " << study.counts.Finished() << " done\n";
  return absl::OkStatus();
}

absl::Status OrderStudy(Session& session, StudyOrder order, bool stop_running_trials) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().OrderStudy(
                                                    session.study, order, stop_running_trials));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  const std::string running = absl::StrCat(study.counts.running, " running");
  session.out << study.spec.name << ": ";
  if (order == StudyOrder::kRun) {
    session.out << "goes on";
    if (study.finished) {
      session.out << WithServer(absl::StrCat(", but its budget is used up; for more trials: hpo "
                                             "study extend ",
                                             study.spec.name, " --add 20"),
                                session.client.advised_address());
    }
  } else {
    session.out << (order == StudyOrder::kPause ? "paused, " : "stopped, ") << running
                << (stop_running_trials ? " to be stopped" : "");
  }
  session.out << "\n";
  return absl::OkStatus();
}

absl::Status ValidateStudyFile(Session& session, const StudyFileOptions& file) {
  HPO_ASSIGN_OR_RETURN(const StudySource text, ReadStudySource(file));
  HPO_ASSIGN_OR_RETURN(const StudySpec spec, ParseStudyFile(text.yaml, text.origin, {}));
  const absl::StatusOr<CreateResult> check =
      session.client.studies().CreateStudy(text.yaml, text.origin, /*validate_only=*/true);
  if (!check.ok() && !absl::IsUnavailable(check.status())) return check.status();
  if (session.json) {
    const StudyStatus study = check.ok() ? check->study : StudyStatus{.spec = spec};
    PrintJson({{"valid", true},
               {"stored", false},
               {"created", check.ok() ? Json(check->created) : Json(nullptr)},
               {"compared_with_server", check.ok()},
               {"study", StudyJson(study)}},
              session.out);
    return absl::OkStatus();
  }
  session.out << text.origin << " is valid: study " << spec.name << "\n";
  if (!check.ok()) {
    session.out << "no server answers at " << session.client.address()
                << ": not compared with what it may hold of that name\n";
  }
  session.out << "\n" << SpaceTable(spec.space, session.terminal.columns, session.terminal.colors);
  return absl::OkStatus();
}

absl::Status CreateStudy(Session& session, const StudyFileOptions& file) {
  HPO_ASSIGN_OR_RETURN(const StudySource text, ReadStudySource(file));
  HPO_ASSIGN_OR_RETURN(const CreateResult check,
                       session.client.studies().CreateStudy(text.yaml, text.origin, false));
  if (session.json) {
    PrintJson({{"valid", true},
               {"stored", true},
               {"created", check.created},
               {"study", StudyJson(check.study)}},
              session.out);
    return absl::OkStatus();
  }
  session.out << "study " << check.study.spec.name
              << (check.created ? " created\n" : " was there already\n");
  if (check.study.finished && !check.study.waiting_for.empty()) {
    session.out << "ended: " << Printable(check.study.waiting_for) << "\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<StudyStatus> WatchStudy(Session& session, bool until_finished) {
  const WatchOptions options{
      .study = session.study, .until_finished = until_finished, .output = &session.out};
  if (session.json) {
    WatchLines lines(session.out);
    HPO_ASSIGN_OR_RETURN(StudyStatus study, Watch(session.client, options, lines));
    lines.End(study);
    return study;
  }
  WatchDisplay display(session.terminal, session.out);
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, Watch(session.client, options, display));
  session.out << DescribeProgress(study) << " trials, " << DescribeOoms(study.counts) << "\n"
              << WithServer(BestLines(study), session.client.advised_address())
              << FailureText(study);
  return study;
}

}  // namespace hpo::cli
