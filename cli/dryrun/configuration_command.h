// The program's command for one configuration of a study, as hpo-worker would run it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "worker/command/command_template.h"

namespace hpo::cli {

struct ConfigurationRun {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // put over our own
};

class ConfigurationCommand {
 public:
  // `words` with placeholders; empty: the study's own command, in its folder. The study outlives
  // it.
  //   InvalidArgument  there is no command; a placeholder that no parameter fills, or in a place
  //                    where the shell could run its value
  static absl::StatusOr<ConfigurationCommand> Create(const StudySpec& study,
                                                     const std::vector<std::string>& words);

  // The parameters of `names` that the program can see: all where it gets a file, {args} or
  // {overrides}, or reads HPO_PARAMS; else those with a placeholder.
  std::vector<std::string> Seen(const std::vector<std::string>& names) const;

  // Whether the program probably sees no parameter: the command has no placeholder, and no file
  // that it names reads HPO_PARAMS.
  bool IsTheSameForAll() const;

  // That each trial of the study takes.
  int64_t NumGpus() const { return study_->trainer.gpus; }

  // Writes the configuration's files into `folder`, which exists and is absolute.
  //   InvalidArgument  a placeholder of a parameter that this configuration does not have
  //   codes of FileError (common/files/read_file.h)
  absl::StatusOr<ConfigurationRun> For(const ParamMap& params, const std::string& folder) const;

 private:
  ConfigurationCommand(const StudySpec& study, std::string text, std::string workdir);

  const StudySpec* study_;
  std::string text_;
  std::string workdir_;
  command::CommandTemplate template_;
};

}  // namespace hpo::cli
