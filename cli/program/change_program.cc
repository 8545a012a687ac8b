// Tested by tests/cli/program/program_test.cc.
#include "cli/program/change_program.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/client/session.h"
#include "cli/commands/studies/annotate_command.h"
#include "cli/commands/studies/archive_commands.h"
#include "cli/commands/studies/edit_command.h"
#include "cli/commands/trials/trial_commands.h"
#include "common/command_line/bounds.h"

namespace hpo {
namespace {

// Notes, tags and attributes of a study or of a trial.
void AddAnnotate(const ChangeCommands& commands, bool of_trial) {
  struct Values {
    AnnotateOptions options;
    int64_t number = 0;
  };
  const auto values = std::make_shared<Values>();
  CLI::App* annotate =
      commands.add("annotate", of_trial ? "Change the note, tags and attributes of a trial"
                                        : "Change the note, tags and attributes of a study");
  if (of_trial) {
    annotate->add_option("number", values->number, "Number of the trial")
        ->type_name("N")
        ->required()
        ->check(AtLeast(0));
  } else {
    AddNameArgument(annotate, commands.study);
  }
  AnnotateOptions& options = values->options;
  annotate->add_option("--note", options.note, "New note ('' removes the note)")->type_name("TEXT");
  const auto repeatable = [annotate](const char* name, std::vector<std::string>& texts,
                                     const char* help, const char* type) {
    annotate->add_option(name, texts, help)->type_name(type)->allow_extra_args(false);
  };
  repeatable("--tag", options.tags, "Add this tag (repeatable)", "TAG");
  repeatable("--untag", options.untags, "Remove this tag (repeatable)", "TAG");
  repeatable("--set", options.set, "Set an attribute; its value is JSON or text (repeatable)",
             "KEY=VALUE");
  repeatable("--unset", options.unset, "Remove this attribute (repeatable)", "KEY");
  commands.on(annotate, Plain([values, of_trial](Session& session) {
                AnnotateOptions chosen = values->options;
                if (of_trial) chosen.trial = TrialNumber{values->number};
                return ChangeAttributes(session, chosen);
              }));
}

void AddRetry(const ChangeCommands& commands) {
  struct Values {
    std::vector<int64_t> numbers;
    bool failed = false;
  };
  const auto values = std::make_shared<Values>();
  CLI::App* retry =
      commands.add("retry", "Queue the configurations of failed trials again, as new trials");
  retry
      ->add_option("numbers", values->numbers, "Number of a trial that failed or ran out of memory")
      ->type_name("N")
      ->check(AtLeast(0));
  retry->add_flag("--failed", values->failed, "Retry every trial that failed or ran out of memory");
  commands.on(retry, Plain([values](Session& session) -> absl::Status {
                if (values->numbers.empty() != values->failed) {
                  return absl::InvalidArgumentError(
                      absl::StrCat("expected the trials' numbers or --failed, got ",
                                   values->failed ? "both" : "neither"));
                }
                return RetryTrials(session, values->numbers);
              }));
}

void AddEdit(const ChangeCommands& commands) {
  const auto options = std::make_shared<EditOptions>();
  CLI::App* edit = commands.add("edit", "Change the ranges and choices of a study");
  AddNameArgument(edit, commands.study);
  edit->add_option("file", options->file, "Study file with the changed ranges or choices")
      ->type_name("FILE");
  edit->add_option(
          "--set", options->set,
          "New range or choices of a parameter, as NAME=LOW..HIGH or NAME=A,B (repeatable)")
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  edit->add_flag("--dry-run", options->dry_run, "Show the changes without making them");
  commands.on(edit, Plain([options](Session& session) { return EditStudy(session, *options); }));
}

void AddDelete(const ChangeCommands& commands) {
  const auto options = std::make_shared<DeleteOptions>();
  CLI::App* remove = commands.add("delete", "Write an archive of a study, then delete the study");
  remove->add_option("name", commands.study, "Name of the study")->type_name("STUDY")->required();
  CLI::Option* const archive =
      remove
          ->add_option("--archive", options->archive,
                       "File of the archive [default: NAME.hpo-study in this folder]")
          ->type_name("FILE");
  remove->add_flag("--no-archive", options->no_archive, "Delete the study without an archive")
      ->excludes(archive);
  commands.on(remove,
              Plain([options](Session& session) { return DeleteStudy(session, *options); }));

  struct Values {
    std::string file;
    std::string name;
  };
  const auto values = std::make_shared<Values>();
  CLI::App* restore = commands.add("restore", "Restore a deleted study from its archive");
  restore->add_option("file", values->file, "File of the archive")->type_name("FILE")->required();
  restore
      ->add_option("--name", values->name, "Name of the study [default: the name in the archive]")
      ->type_name("NAME");
  commands.on(restore, Plain([values](Session& session) {
                return RestoreStudy(session, values->file, values->name);
              }));
}

}  // namespace

void AddNameArgument(CLI::App* command, std::string& study) {
  command->add_option("name", study, "Name of the study; not needed if there is only one")
      ->type_name("STUDY")
      ->check(NotEmpty("the name of a study"));
}

void AddTagFilter(CLI::App* list, std::vector<std::string>& tags) {
  list->add_option("--tag", tags, "List only those with this tag (repeatable)")->type_name("TAG");
}

void AddStudyChanges(const ChangeCommands& commands) {
  AddEdit(commands);
  AddAnnotate(commands, /*of_trial=*/false);
  AddDelete(commands);
}

void AddTrialChanges(const ChangeCommands& commands) {
  AddAnnotate(commands, /*of_trial=*/true);
  AddRetry(commands);
}

}  // namespace hpo
