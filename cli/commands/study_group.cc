// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/study_group.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/commands/importance_command.h"
#include "cli/commands/shared_options.h"
#include "cli/commands/studies/annotate_command.h"
#include "cli/commands/studies/archive_commands.h"
#include "cli/commands/studies/edit_command.h"
#include "cli/commands/studies/study_commands.h"
#include "cli/commands/studies/study_presets_command.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"

namespace hpo::cli {
namespace {

constexpr char kStudyExamples[] = R"(
  hpo study list
  hpo study show criteria
  hpo study presets                       list the study files that come with hpo
  hpo study importance criteria --method fanova
  hpo study extend criteria --wall-clock 8h
  hpo study stop criteria --now
  hpo study resume criteria
  hpo study validate my.yaml              list all errors of a study file
  hpo study create my.yaml --name second   create another study from the same file
  hpo study annotate criteria --note "baseline of May" --tag paper
  hpo study list --tag paper
  hpo study edit criteria --set train.lr=1e-5..1e-3 --set train.batch_size=8,16
  hpo study delete criteria               write criteria.hpo-study, then delete the study
  hpo study restore criteria.hpo-study --name again
  hpo study extend criteria --target 0.9   end the study when a trial reaches 0.9
)";

Action DeclareStudyList(CLI::App& list, std::string& /*study*/) {
  const auto tags = std::make_shared<std::vector<std::string>>();
  AddTagFilter(list, *tags);
  return Plain([tags](Session& session) { return ListStudies(session, *tags); });
}

Action DeclareEdit(CLI::App& edit, std::string& study) {
  const auto options = std::make_shared<EditOptions>();
  AddNameArgument(edit, study);
  edit.add_option("file", options->file, "Study file with the changed ranges or choices")
      ->type_name("FILE");
  edit.add_option("--set", options->set,
                  "New range or choices of a parameter, as NAME=LOW..HIGH or NAME=A,B (repeatable)")
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  edit.add_flag("--dry-run", options->dry_run, "Show the changes without making them");
  return Plain([options](Session& session) { return EditStudy(session, *options); });
}

Action DeclareStudyAnnotate(CLI::App& annotate, std::string& study) {
  const auto options = std::make_shared<AnnotateOptions>();
  AddNameArgument(annotate, study);
  AddAnnotations(annotate, *options);
  return Plain([options](Session& session) { return ChangeAttributes(session, *options); });
}

Action DeclareDelete(CLI::App& remove, std::string& study) {
  const auto options = std::make_shared<DeleteOptions>();
  remove.add_option("name", study, "Name of the study")->type_name("STUDY")->required();
  CLI::Option* const archive =
      remove
          .add_option("--archive", options->archive,
                      "File of the archive [default: NAME.hpo-study in this folder]")
          ->type_name("FILE");
  remove.add_flag("--no-archive", options->no_archive, "Delete the study without an archive")
      ->excludes(archive);
  return Plain([options](Session& session) { return DeleteStudy(session, *options); });
}

Action DeclareRestore(CLI::App& restore, std::string& /*study*/) {
  struct Values {
    std::string file;
    std::string name;
  };
  const auto values = std::make_shared<Values>();
  restore.add_option("file", values->file, "File of the archive")->type_name("FILE")->required();
  restore
      .add_option("--name", values->name, "Name of the study [default: the name in the archive]")
      ->type_name("NAME");
  return Plain(
      [values](Session& session) { return RestoreStudy(session, values->file, values->name); });
}

Action DeclareShow(CLI::App& show, std::string& study) {
  AddNameArgument(show, study);
  return Plain(ShowStudy);
}

Action DeclarePresets(CLI::App& presets, std::string& /*study*/) {
  const auto preset = std::make_shared<std::string>();
  presets.add_option("name", *preset, "Print the study file with this name")->type_name("PRESET");
  return Plain([preset](Session& session) { return ShowPresets(session, *preset); });
}

Action DeclareImportance(CLI::App& importance, std::string& study) {
  const auto options = std::make_shared<ImportanceOptions>();
  AddNameArgument(importance, study);
  importance
      .add_option("--method", options->method,
                  "ped-anova: importance for reaching the best values; fanova: share of the "
                  "variance")
      ->check(OneOf({"ped-anova", "fanova"}))
      ->capture_default_str();
  importance
      .add_option("--metric", options->metric, "Name of the objective [default: the first one]")
      ->type_name("METRIC");
  return Plain([options](Session& session) { return ShowImportance(session, *options); });
}

struct ExtendValues {
  StudyUpdate update;
  std::string wall_clock;
  std::string target;
};

absl::Status ReadWallClock(const std::string& text, StudyUpdate& update) {
  if (text.empty()) return absl::OkStatus();
  absl::Duration wall_clock;
  if (!absl::ParseDuration(text, &wall_clock) || wall_clock <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wall-clock: expected a duration such as 2h or 90m, got '", text, "'"));
  }
  update.wall_clock = wall_clock;
  return absl::OkStatus();
}

absl::Status ReadTarget(const std::string& text, StudyUpdate& update) {
  if (text.empty()) return absl::OkStatus();
  if (text == "none") {
    update.remove_target = true;
    return absl::OkStatus();
  }
  double target = 0.0;
  if (!absl::SimpleAtod(text, &target) || !std::isfinite(target)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--target: expected a number or none, got '", text, "'"));
  }
  update.target = target;
  return absl::OkStatus();
}

absl::Status Extend(Session& session, const ExtendValues& values) {
  StudyUpdate update = values.update;
  HPO_RETURN_IF_ERROR(ReadWallClock(values.wall_clock, update));
  HPO_RETURN_IF_ERROR(ReadTarget(values.target, update));
  if (update == StudyUpdate{}) {
    return absl::InvalidArgumentError(
        "expected --trials, --add, --wall-clock, --failures-in-a-row, --failed-share or "
        "--target, got none");
  }
  return ExtendStudy(session, update);
}

Action DeclareExtend(CLI::App& extend, std::string& study) {
  const auto values = std::make_shared<ExtendValues>();
  AddNameArgument(extend, study);
  extend.add_option("--trials", values->update.trials, "New total number of trials")
      ->type_name("N")
      ->check(AtLeast(0));
  extend.add_option("--add", values->update.add_trials, "Number of trials to add to the budget")
      ->type_name("N")
      ->check(AtLeast(1))
      ->excludes("--trials");
  extend
      .add_option("--wall-clock", values->wall_clock, "Total time that trials may run, such as 2h")
      ->type_name("DURATION");
  extend
      .add_option("--failures-in-a-row", values->update.failures_in_a_row,
                  "Number of failures in a row, before the first completed trial, that end the "
                  "study (0: no limit)")
      ->type_name("N")
      ->check(AtLeast(0));
  extend
      .add_option("--failed-share", values->update.failed_share,
                  "Largest fraction of trials that may fail (1: no limit)")
      ->type_name("S")
      ->check(Between(0.0, 1.0));
  extend
      .add_option("--target", values->target,
                  "Value of the objective that ends the study (none: no target)")
      ->type_name("VALUE");
  return Plain([values](Session& session) { return Extend(session, *values); });
}

Action DeclareStop(CLI::App& stop, std::string& study) {
  const auto now = std::make_shared<bool>(false);
  stop.add_flag("--now", *now, "Also cancel the running trials");
  AddNameArgument(stop, study);
  return Plain([now](Session& session) { return OrderStudy(session, StudyOrder::kStop, *now); });
}

Declaration Ordering(StudyOrder order) {
  return [order](CLI::App& command, std::string& study) {
    AddNameArgument(command, study);
    return Plain([order](Session& session) {
      return OrderStudy(session, order, /*stop_running_trials=*/false);
    });
  };
}

// A command on the study file that its argument names.
Declaration OnFile(absl::Status (*run)(Session&, const StudyFileOptions&)) {
  return [run](CLI::App& command, std::string& /*study*/) {
    const auto file = std::make_shared<StudyFileOptions>();
    command.add_option("file", file->path, "Study file (YAML)")
        ->type_name("FILE")
        ->required()
        ->check(NotEmpty("a study file, or the name of a preset"));
    command.add_option("--name", file->name, "Name of the study [default: the name in the file]")
        ->type_name("NAME");
    return Plain([file, run](Session& session) { return run(session, *file); });
  };
}

}  // namespace

Command StudyGroup() {
  using enum Access;
  return {
      .name = "study",
      .help = "Create, list, show and change studies",
      .examples = kStudyExamples,
      .commands = {
          {"list", "List the studies, one per line", kReads, DeclareStudyList},
          {"edit", "Change the ranges and choices of a study", kChanges, DeclareEdit},
          {"annotate", "Change the note, tags and attributes of a study", kChanges,
           DeclareStudyAnnotate},
          {"delete", "Write an archive of a study, then delete the study", kChanges, DeclareDelete},
          {"restore", "Restore a deleted study from its archive", kChanges, DeclareRestore},
          {"show", "Show a study and its search space", kReads, DeclareShow},
          {"presets", "List or print the study files that come with hpo (needs no server)", kReads,
           DeclarePresets, Output::kVerbatim},
          {"importance", "Show how much each parameter influences the objective", kReads,
           DeclareImportance},
          {"extend", "Change the budget of a study", kChanges, DeclareExtend},
          {"stop", "End a study: its workers start no more trials and leave", kChanges,
           DeclareStop},
          {"pause", "Start no more trials; running trials continue, and workers wait", kChanges,
           Ordering(StudyOrder::kPause)},
          {"resume", "Resume a study that was paused, was stopped or has failed", kChanges,
           Ordering(StudyOrder::kRun)},
          {"validate", "Check a study file and list its errors (needs no server)", kReads,
           OnFile(ValidateStudyFile)},
          {"create", "Create a study on the server from a study file", kChanges,
           OnFile(CreateStudy)},
      }};
}

}  // namespace hpo::cli
