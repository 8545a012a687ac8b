#include "cli/program/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/client/database_snapshot.h"
#include "cli/client/last_run.h"
#include "cli/client/session.h"
#include "cli/program/command_table.h"
#include "cli/program/completion.h"
#include "cli/render/wrapped_output.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/command_line/bounds.h"
#include "common/command_line/command_line.h"
#include "common/command_line/exit_status.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"
#include "common/tls/server_route.h"

namespace hpo::cli {
namespace {

struct GlobalOptions {
  std::string server = "127.0.0.1:50051";
  std::string join;  // as tls::JoinSource takes it; empty: the environment's, if there is one
  bool names_server = false;  // by --server
  std::string study;
  std::string database;  // read without a server; empty: ask one
  std::string output = "table";
  std::string color = "auto";
  std::vector<std::string> forwarded;  // not of this command line: another program reads them
};

void DeclareGlobals(CLI::App& app, GlobalOptions& global) {
  app.add_option("--server", global.server, "Address of hpo-server")
      ->type_name("ADDRESS")
      ->check(ServerAddress())
      ->envname("HPO_SERVER")
      ->capture_default_str();
  app.add_option("--join", global.join,
                 "Join string of a server on another machine, which the server has printed, or "
                 "file:PATH of a file with it [default: HPO_JOIN, or the file HPO_JOIN_FILE]")
      ->type_name("JOIN")
      ->check(NotEmpty("a join string"));
  app.add_option("--study", global.study,
                 "Name of the study [default: HPO_STUDY, or the only study]")
      ->type_name("STUDY")
      ->check(NotEmpty("the name of a study"));
  app.add_option(
         "--db", global.database,
         "Database file to read instead of asking a server. It is not changed, and a server "
         "can use it at the same time")
      ->type_name("FILE")
      ->check(NotEmpty("a database file"));
  app.add_option("-o,--output", global.output,
                 "Format of the output: table or json; hpo best also has yaml")
      ->check(OneOf({"table", "json", "yaml"}))
      ->capture_default_str();
  app.add_option(
         "--color", global.color,
         "Use colours in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  app.set_version_flag("--version", absl::StrCat("hpo ", std::string(Version())));
}

// Number of the words up to and with `memory dry-run`, whose further words another program reads;
// all where the command is another one.
int NumOwnWords(int argc, const char* const* argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (absl::string_view(argv[i]) == "memory" && absl::string_view(argv[i + 1]) == "dry-run") {
      return i + 2;
    }
  }
  return argc;
}

// `hpo __complete WORD...`, as the scripts of hpo completion ask. Whatever is wrong, there is an
// answer, and soon.
int PrintCompletions(const CLI::App& app, const GlobalOptions& global,
                     const std::vector<std::string>& words, std::ostream& out) {
  constexpr absl::Duration kPatience = absl::Milliseconds(500);
  Completions completions = CompleteWords(app, words);
  // To copy a database would take too long.
  if (completions.wants_studies && completions.database.empty()) {
    const char* const usual = std::getenv("HPO_SERVER");
    std::string server = completions.server;
    if (server.empty()) server = usual != nullptr && *usual != '\0' ? usual : global.server;
    Client client(WithDefaultPort(server), kPatience);
    std::vector<std::string> names;
    for (const StudyStatus& study :
         client.studies().ListStudies().value_or(std::vector<StudyStatus>())) {
      names.push_back(study.spec.name);
    }
    AddStudyNames(names, words.back(), completions);
  }
  out << CompletionText(completions);
  return kExitOk;
}

// The file in place of a server, where --db names one; else null.
absl::StatusOr<std::unique_ptr<DatabaseSnapshot>> OpenDatabase(const GlobalOptions& global,
                                                               const ChosenCommand& chosen,
                                                               std::ostream& err) {
  if (global.database.empty()) return nullptr;
  if (chosen.access != Access::kReads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--db: expected a command that only reads, such as hpo status, hpo trial list or hpo best, "
        "got hpo ",
        chosen.words, "; for it, start a server on the file: hpo-server --db ",
        ShellWord(global.database)));
  }
  return DatabaseSnapshot::Open(global.database, err);
}

int PrintError(const absl::Status& status, std::ostream& err) {
  const char* before = "hpo: ";
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    err << std::exchange(before, "") << Printable(line) << "\n";
  }
  return ExitStatusOf(status);
}

Terminal WithColors(Terminal terminal, const std::string& choice) {
  if (choice != "auto") terminal.colors = choice == "always";
  return terminal;
}

// The server that is asked: a join string beats HPO_SERVER, and --server beats the environment's
// join string.
absl::StatusOr<tls::ServerRoute> RouteOf(const GlobalOptions& global) {
  const std::string server = WithDefaultPort(global.server);
  if (global.names_server) return tls::FindRoute(std::nullopt, server);
  HPO_ASSIGN_OR_RETURN(const auto join, tls::JoinSource::Find(global.join));
  return tls::FindRoute(join, server);
}

// Runs the chosen command on the database file that is named, else on the server.
absl::StatusOr<int> RunChosen(const GlobalOptions& global, const ChosenCommand& chosen,
                              const Terminal& terminal, std::ostream& out, std::ostream& err) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<DatabaseSnapshot> file,
                       OpenDatabase(global, chosen, err));
  HPO_ASSIGN_OR_RETURN(tls::ServerRoute route,
                       file ? tls::FindRoute(std::nullopt, file->address()) : RouteOf(global));
  Client client(std::move(route), absl::Seconds(30),
                file ? ServerSource::kSnapshot : ServerSource::kServer);
  if (file && client.WaitUntilReachable(absl::Seconds(30))) file->RemoveFiles();
  const bool wraps =
      terminal.columns > 0 && global.output == "table" && chosen.output == Output::kForPeople;
  WrappedOutput wrapped(out, std::max(1, terminal.columns));
  std::ostream wrapped_out(&wrapped);
  Session session{.client = client,
                  .out = wraps ? wrapped_out : out,
                  .terminal = WithColors(terminal, global.color),
                  .json = global.output == "json",
                  .yaml = global.output == "yaml",
                  .study = global.study,
                  .database = global.database,
                  .join = global.join,
                  .forwarded = global.forwarded};
  return chosen.action(session);
}

// Where no server was named and none answers, the last `hpo run` is meant.
absl::StatusOr<int> RunOnLastRun(GlobalOptions global, const ChosenCommand& chosen,
                                 const Terminal& terminal, std::ostream& out, std::ostream& err,
                                 const absl::Status& unreachable) {
  const std::optional<LastRun> last = FindLastRun();
  if (!last) return unreachable;
  const std::string database = last->folder + "/hpo.db";
  if (chosen.access != Access::kReads) {
    return absl::UnavailableError(absl::StrCat(
        unreachable.message(), "; to start one for the last hpo run, which was of study ",
        last->study, ": hpo-server --db ", ShellWord(database)));
  }
  err << "hpo: no hpo-server answers at " << Printable(WithDefaultPort(global.server))
      << "; reading the database of the last hpo run: " << Printable(database) << std::endl;
  global.database = database;
  if (global.study.empty()) global.study = last->study;
  return RunChosen(global, chosen, terminal, out, err);
}

}  // namespace

int RunHpo(int argc, const char* const* argv, const Terminal& terminal, std::ostream& out,
           std::ostream& err) {
  CLI::App app("Runs and controls hyperparameter studies, and predicts the memory of their trials.",
               "hpo");
  GlobalOptions global;
  DeclareGlobals(app, global);
  ChosenCommand chosen;
  DeclareCommands(app, global.study, chosen);
  if (argc > 2 && absl::string_view(argv[1]) == "__complete") {
    return PrintCompletions(app, global, {argv + 2, argv + argc}, out);
  }
  const int num_own = NumOwnWords(argc, argv);
  global.forwarded.assign(argv + num_own, argv + argc);
  const int columns =
      terminal.columns > 0 ? std::min(terminal.columns, kTextColumns) : kTextColumns;
  if (const auto over = ParseCommandLine(app, num_own, argv, out, err, columns)) return *over;
  global.names_server = NamesOption("--server", num_own, argv);
  if (global.names_server && !global.join.empty()) {
    err << "hpo: --join and --server: expected one of the two, got both\n";
    return kUsageExit;
  }
  const char* const usual_study = std::getenv("HPO_STUDY");
  if (global.study.empty() && usual_study != nullptr) global.study = usual_study;
  if (global.output == "yaml" && !app.got_subcommand("best")) {
    err << "hpo: --output: expected table or json, got 'yaml', which only hpo best writes\n";
    return kUsageExit;
  }
  absl::StatusOr<int> status = RunChosen(global, chosen, terminal, out, err);
  const bool names_server = app.count("--server") > 0 || !global.database.empty();
  if (IsUnreachable(status.status()) && !names_server) {
    status = RunOnLastRun(global, chosen, terminal, out, err, status.status());
  }
  return status.ok() ? *status : PrintError(status.status(), err);
}

}  // namespace hpo::cli
