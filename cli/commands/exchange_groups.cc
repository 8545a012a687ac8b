// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/exchange_groups.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands/exchange/export_commands.h"
#include "cli/commands/exchange/export_page.h"
#include "cli/commands/exchange/import_command.h"
#include "cli/commands/shared_options.h"
#include "cli/commands/studies/admin_commands.h"
#include "common/command_line/bounds.h"

namespace hpo::cli {
namespace {

constexpr char kExportExamples[] = R"(
  hpo export html criteria                write criteria.html, for a browser
  hpo export tensorboard --to ./runs
  hpo export optuna study.db
)";

Action DeclareMlflow(CLI::App& mlflow, std::string& /*study*/) {
  struct Values {
    std::string to;
    std::string experiment;
  };
  const auto values = std::make_shared<Values>();
  mlflow.add_option("--to", values->to, "Address of the MLflow tracking server, http://host:port")
      ->type_name("URI")
      ->envname("MLFLOW_TRACKING_URI")
      ->required();
  mlflow
      .add_option("--experiment", values->experiment,
                  "Name of the MLflow experiment [default: the name of the study]")
      ->type_name("NAME");
  return Plain(
      [values](Session& session) { return ExportMlflow(session, values->to, values->experiment); });
}

Action DeclareTensorboard(CLI::App& tensorboard, std::string& /*study*/) {
  const auto folder = std::make_shared<std::string>();
  tensorboard.add_option("--to", *folder, "Log folder for TensorBoard")
      ->type_name("DIR")
      ->required();
  return Plain([folder](Session& session) { return ExportTensorboard(session, *folder); });
}

Action DeclareExportOptuna(CLI::App& optuna, std::string& study) {
  const auto path = std::make_shared<std::string>();
  optuna.add_option("file", *path, "SQLite file to create, or to add the study to")
      ->type_name("FILE.db")
      ->required();
  AddNameArgument(optuna, study);
  return Plain([path](Session& session) { return ExportOptuna(session, *path); });
}

Action DeclareExportHtml(CLI::App& html, std::string& study) {
  const auto path = std::make_shared<std::string>();
  AddNameArgument(html, study);
  html.add_option("--to", *path,
                  "File to write; an existing file is replaced [default: STUDY.html]")
      ->type_name("FILE");
  return Plain([path](Session& session) { return ExportPage(session, *path); });
}

Action DeclareImportOptuna(CLI::App& optuna, std::string& study) {
  const auto options = std::make_shared<ImportOptions>();
  optuna.add_option("file", options->path, "SQLite file of Optuna")
      ->type_name("FILE.db")
      ->required();
  AddNameArgument(optuna, study);
  optuna.add_option("--from", options->study, "Name of the Optuna study [default: the only one]")
      ->type_name("NAME");
  optuna.add_flag("--count", options->count_against_budget,
                  "Count the imported trials as part of the study's budget");
  return Plain([options](Session& session) { return ImportOptuna(session, *options); });
}

Action DeclareBackup(CLI::App& backup, std::string& /*study*/) {
  const auto file = std::make_shared<std::string>();
  backup.add_option("file", *file, "File to write; an existing file is replaced")
      ->type_name("FILE")
      ->required();
  return Plain([file](Session& session) { return BackUpDatabase(session, *file); });
}

Action DeclareDatabaseRestore(CLI::App& restore, std::string& /*study*/) {
  struct Values {
    std::string file;
    std::string database;
  };
  const auto values = std::make_shared<Values>();
  restore.add_option("file", values->file, "Backup file")->type_name("FILE")->required();
  restore
      .add_option("--db", values->database,
                  "Database of the server [default: the same as for hpo-server --db]")
      ->type_name("FILE");
  return [values](Session&) { return RunRestore(values->file, values->database); };
}

void AddTokenName(CLI::App& command, std::string& name) {
  command.add_option("name", name, "Name of the token")->type_name("NAME")->required();
}

void AddLifetime(CLI::App& command, std::string& lifetime, const char* otherwise) {
  command
      .add_option("--expires-in", lifetime,
                  absl::StrCat("Time after which the token expires, such as 720h [default: ",
                               otherwise, "]"))
      ->type_name("DURATION");
}

Action DeclareTokenCreate(CLI::App& create, std::string& /*study*/) {
  const auto options = std::make_shared<TokenOptions>();
  AddTokenName(create, options->name);
  create
      .add_option("--role", options->role,
                  "What it allows: read, work (workers), write (no commands) or admin")
      ->required()
      ->check(OneOf({"read", "work", "write", "admin"}));
  AddLifetime(create, options->lifetime, "never");
  return Plain([options](Session& session) { return CreateToken(session, *options); });
}

Action DeclareTokenRotate(CLI::App& rotate, std::string& /*study*/) {
  const auto options = std::make_shared<TokenOptions>();
  AddTokenName(rotate, options->name);
  rotate
      .add_option("--grace", options->grace,
                  "Time for which the old secret is accepted as well; 0s after a leak")
      ->type_name("DURATION")
      ->capture_default_str();
  AddLifetime(rotate, options->lifetime, "as before");
  return Plain([options](Session& session) { return RotateToken(session, *options); });
}

Action DeclareTokenRevoke(CLI::App& revoke, std::string& /*study*/) {
  const auto name = std::make_shared<std::string>();
  AddTokenName(revoke, *name);
  return Plain([name](Session& session) { return RevokeToken(session, *name); });
}

}  // namespace

Command ExportGroup() {
  return {
      .name = "export",
      .help = "Export the trials of a study to other tools",
      .examples = kExportExamples,
      .commands = {
          {"html", "Write the page of a study to one file, which a browser opens without a server",
           Access::kReads, DeclareExportHtml},
          {"mlflow", "Export each trial as an MLflow run; a second export updates the runs",
           Access::kReads, DeclareMlflow},
          {"tensorboard", "Export an event file for each trial", Access::kReads,
           DeclareTensorboard},
          {"optuna", "Export a database that Optuna and its dashboard can open", Access::kReads,
           DeclareExportOptuna},
      }};
}

Command ImportGroup() {
  return {.name = "import",
          .help = "Import trials that another tool has run",
          .commands = {
              {"optuna", "Import an Optuna study: creates the study, or adds the new trials to it",
               Access::kChanges, DeclareImportOptuna},
          }};
}

Command TokenGroup() {
  return {.name = "token",
          .help = "Tokens, by which programs on other machines reach the server",
          .examples = "  hpo admin token create ci --role read --expires-in 720h\n",
          .commands = {
              {.name = "list",
               .help = "List all tokens, without their secrets",
               .declare = WithoutOptions(Plain(ListTokens))},
              {"create", "Make a token, and show its join string once", Access::kChanges,
               DeclareTokenCreate},
              {"rotate", "Replace the secret of a token; the old one works for a while",
               Access::kChanges, DeclareTokenRotate},
              {"revoke", "End a token, and close its connections", Access::kChanges,
               DeclareTokenRevoke},
          }};
}

Command AdminGroup() {
  return {
      .name = "admin",
      .help = "Back up and restore the database of a server, and make tokens",
      .examples = "  hpo admin restore hpo-backup.db         stop the server before you run this\n",
      .commands = {
          {"backup", "Copy the database of a running server to a file", Access::kChanges,
           DeclareBackup},
          {"restore", "Replace the database of a stopped server by a backup; keeps the old one",
           Access::kChanges, DeclareDatabaseRestore},
          TokenGroup(),
      }};
}

}  // namespace hpo::cli
