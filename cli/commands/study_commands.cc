// The commands on studies: the first half of commands.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/commands/watch.h"
#include "cli/render/json.h"
#include "cli/render/text.h"
#include "cli/render/wording.h"
#include "common/base/read_file.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
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

}  // namespace

absl::Status ShowStatus(Session& session) {
  std::vector<StudyStatus> studies;
  if (session.study.empty()) {
    HPO_ASSIGN_OR_RETURN(studies, session.client.ListStudies());
  } else {
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), session.client.GetStudy(session.study));
  }
  HPO_ASSIGN_OR_RETURN(const ServerStatus server, session.client.GetServer());
  if (session.json) {
    const Json json = {{"server", session.client.address()},
                       {"trouble", server.trouble},
                       {"damage", server.damage},
                       {"studies", StudiesJson(studies)}};
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  session.out << "hpo-server at " << session.client.address() << "\n" << ServerText(server);
  for (const StudyStatus& study : studies) {
    session.out << "\n" << StudyText(study, session.terminal.columns);
  }
  if (studies.empty()) session.out << "no studies; add one with: hpo study create FILE\n";
  return absl::OkStatus();
}

absl::Status ListStudies(Session& session) {
  HPO_ASSIGN_OR_RETURN(const std::vector<StudyStatus> studies, session.client.ListStudies());
  if (session.json) {
    PrintJson(StudiesJson(studies), session.out);
  } else {
    session.out << StudyTable(studies, session.terminal.columns);
  }
  return absl::OkStatus();
}

absl::Status ShowStudy(Session& session) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.GetStudy(session.study));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  session.out << StudyText(study, session.terminal.columns) << "\n"
              << SpaceTable(study.spec.space, session.terminal.columns);
  return absl::OkStatus();
}

absl::Status ExtendStudy(Session& session, const StudyChange& change) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.UpdateStudy(change));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  const Budget& budget = study.spec.budget;
  session.out << study.spec.name << ": budget of "
              << (budget.trials ? absl::StrCat(*budget.trials, " trials") : "any number of trials")
              << (budget.wall_clock ? absl::StrCat(" and ", ShortDuration(*budget.wall_clock)) : "")
              << ", " << study.counts.Finished() << " done\n";
  return absl::OkStatus();
}

absl::Status OrderStudy(Session& session, StudyOrder order, bool stop_running_trials) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study,
                       session.client.OrderStudy(session.study, order, stop_running_trials));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  const std::string running = absl::StrCat(study.counts.running, " running");
  session.out << study.spec.name << ": ";
  if (order == StudyOrder::kRun) {
    session.out << (study.finished ? "goes on, but its budget is used up (hpo study extend)"
                                   : "goes on");
  } else {
    session.out << (order == StudyOrder::kPause ? "paused, " : "stopped, ") << running
                << (stop_running_trials ? " to be stopped" : "");
  }
  session.out << "\n";
  return absl::OkStatus();
}

absl::Status SubmitStudyFile(Session& session, const std::string& path, bool validate_only) {
  HPO_ASSIGN_OR_RETURN(const std::string yaml, ReadFile(path));
  HPO_ASSIGN_OR_RETURN(const Client::StudyCheck check,
                       session.client.CreateStudy(yaml, path, validate_only));
  if (session.json) {
    const Json json = {{"valid", true},
                       {"stored", !validate_only},
                       {"created", check.created},
                       {"study", StudyJson(check.study)}};
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  const std::string& name = check.study.spec.name;
  if (validate_only) {
    session.out << path << " is valid: study " << name << "\n\n"
                << SpaceTable(check.study.spec.space, session.terminal.columns);
  } else {
    session.out << "study " << name << (check.created ? " created\n" : " was there already\n");
  }
  return absl::OkStatus();
}

absl::StatusOr<StudyStatus> WatchStudy(Session& session, bool until_finished) {
  WatchDisplay display(session.terminal, session.out);
  const WatchOptions options{.study = session.study, .until_finished = until_finished};
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, Watch(session.client, options, display));
  session.out << DescribeProgress(study) << " trials, " << DescribeOoms(study.counts) << "\n"
              << FailureText(study);
  return study;
}

}  // namespace hpo
