#include "cli/commands/shared_options.h"

#include <CLI/CLI.hpp>

#include "common/command_line/bounds.h"

namespace hpo::cli {

void AddNameArgument(CLI::App& command, std::string& study) {
  command.add_option("name", study, "Name of the study; not needed if there is only one")
      ->type_name("STUDY")
      ->check(NotEmpty("the name of a study"));
}

void AddTrialNumber(CLI::App& command, int64_t& number) {
  command.add_option("number", number, "Number of the trial")
      ->type_name("N")
      ->required()
      ->check(AtLeast(0));
}

void AddTagFilter(CLI::App& list, std::vector<std::string>& tags) {
  list.add_option("--tag", tags, "List only those with this tag (repeatable)")->type_name("TAG");
}

void AddAnnotations(CLI::App& annotate, AnnotateOptions& options) {
  annotate.add_option("--note", options.note, "New note ('' removes the note)")->type_name("TEXT");
  const auto repeatable = [&annotate](const char* name, std::vector<std::string>& texts,
                                      const char* help, const char* type) {
    annotate.add_option(name, texts, help)->type_name(type)->allow_extra_args(false);
  };
  repeatable("--tag", options.tags, "Add this tag (repeatable)", "TAG");
  repeatable("--untag", options.untags, "Remove this tag (repeatable)", "TAG");
  repeatable("--set", options.set, "Set an attribute; its value is JSON or text (repeatable)",
             "KEY=VALUE");
  repeatable("--unset", options.unset, "Remove this attribute (repeatable)", "KEY");
}

}  // namespace hpo::cli
