// `hpo study annotate` and `hpo trial annotate`: notes, tags and attributes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

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

}  // namespace hpo::cli
