#include "cli/change_program.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/commands/annotate_command.h"
#include "cli/commands/archive_commands.h"
#include "cli/commands/edit_command.h"
#include "cli/commands/trial_commands.h"
#include "cli/session.h"
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
  CLI::App* annotate = commands.add("annotate", "Change its note, tags and attributes");
  if (of_trial) {
    annotate->add_option("number", values->number, "The trial's number")
        ->type_name("N")
        ->required()
        ->check(AtLeast(0));
  } else {
    AddNameArgument(annotate, commands.study);
  }
  AnnotateOptions& options = values->options;
  annotate->add_option("--note", options.note, "A text for people; '' takes it away")
      ->type_name("TEXT");
  const auto repeatable = [annotate](const char* name, std::vector<std::string>& texts,
                                     const char* help, const char* type) {
    annotate->add_option(name, texts, help)->type_name(type)->allow_extra_args(false);
  };
  repeatable("--tag", options.tags, "Add this tag (repeatable)", "TAG");
  repeatable("--untag", options.untags, "Take this tag away (repeatable)", "TAG");
  repeatable("--set", options.set, "An attribute; the value JSON or text (repeatable)",
             "KEY=VALUE");
  repeatable("--unset", options.unset, "Take this attribute away (repeatable)", "KEY");
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
  CLI::App* retry = commands.add("retry", "Queue the configuration of failed trials again");
  retry->add_option("numbers", values->numbers, "Trials that failed, or that memory ended")
      ->type_name("N")
      ->check(AtLeast(0));
  retry->add_flag("--failed", values->failed, "Every trial that failed or met an out-of-memory");
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
  edit->add_option("file", options->file, "The study's changed file")->type_name("FILE");
  edit->add_option("--set", options->set,
                   "A parameter's new range or choices, NAME=LOW..HIGH or NAME=A,B (repeatable)")
      ->type_name("CHANGE")
      ->allow_extra_args(false);
  edit->add_flag("--dry-run", options->dry_run, "Show what would come of it; change nothing");
  commands.on(edit, Plain([options](Session& session) { return EditStudy(session, *options); }));
}

void AddDelete(const ChangeCommands& commands) {
  const auto options = std::make_shared<DeleteOptions>();
  CLI::App* remove = commands.add("delete", "Archive a study, then delete it");
  remove->add_option("name", commands.study, "The study")->type_name("NAME")->required();
  CLI::Option* const archive =
      remove->add_option("--archive", options->archive, "Where to [NAME.hpo-study, here]")
          ->type_name("FILE");
  remove->add_flag("--no-archive", options->no_archive, "Keep nothing of it")->excludes(archive);
  commands.on(remove,
              Plain([options](Session& session) { return DeleteStudy(session, *options); }));

  struct Values {
    std::string file;
    std::string name;
  };
  const auto values = std::make_shared<Values>();
  CLI::App* restore = commands.add("restore", "Add the study of an archive");
  restore->add_option("file", values->file, "The archive")->type_name("FILE")->required();
  restore->add_option("--name", values->name, "The study's name, over the archive's")
      ->type_name("NAME");
  commands.on(restore, Plain([values](Session& session) {
                return RestoreStudy(session, values->file, values->name);
              }));
}

}  // namespace

void AddNameArgument(CLI::App* command, std::string& study) {
  command->add_option("name", study, "The study; may be left out where there is one")
      ->type_name("NAME");
}

void AddTagFilter(CLI::App* list, std::vector<std::string>& tags) {
  list->add_option("--tag", tags, "Only what has this tag (repeatable)")->type_name("TAG");
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
