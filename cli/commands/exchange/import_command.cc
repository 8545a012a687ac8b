#include "cli/commands/exchange/import_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/json.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_space.h"
#include "common/interop/optuna/optuna_study.h"
#include "common/study_file/study_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Summary(const ImportResult& result, const OptunaStudy& read, bool counted,
                    bool created) {
  std::string text = absl::StrCat(created ? absl::StrCat("study ", result.study, " created; ") : "",
                                  result.num_added, " trials of ", read.name, " imported into ",
                                  result.study, counted ? "" : ", outside its budget");
  if (result.num_known > 0) absl::StrAppend(&text, "; ", result.num_known, " were there already");
  if (read.num_open > 0) absl::StrAppend(&text, "; ", read.num_open, " have not ended");
  if (read.num_incomplete > 0) {
    absl::StrAppend(&text, "; ", read.num_incomplete, " failed before they had all parameters");
  }
  if (read.num_lacking > 0) {
    absl::StrAppend(&text, "; ", read.num_lacking,
                    " are left out: they lack a parameter of the study");
  }
  if (read.num_not_finite > 0) {
    absl::StrAppend(&text, "; ", read.num_not_finite,
                    " completed with an infinite value, which the search takes for the worst");
  }
  if (!read.as_text.empty()) {
    absl::StrAppend(&text, "; choices of ", absl::StrJoin(read.as_text, ", "),
                    " that are no numbers or texts are imported as text");
  }
  if (read.num_unfit > 0) {
    absl::StrAppend(&text, "; ", read.num_unfit,
                    " attributes are left out: not JSON, too long or too many");
  }
  return text;
}

// What is noted of the study already stays.
absl::Status AddAttributes(Session& session, const StudyStatus& study, Attributes attributes) {
  std::erase_if(attributes, [&study](const auto& entry) {
    return entry.first != kTagsKey && study.attributes.contains(entry.first);
  });
  if (attributes.empty()) return absl::OkStatus();
  return session.client.studies()
      .ChangeAttributes(study.spec.name, std::nullopt, Adding(attributes))
      .status();
}

bool HasSameParameters(const SearchSpace& a, const SearchSpace& b) {
  return a.parameters.size() == b.parameters.size() &&
         std::all_of(a.parameters.begin(), a.parameters.end(), [&b](const Parameter& parameter) {
           return b.Find(parameter.name) != nullptr;
         });
}

// The study that the trials are for, on the server. Of one that is named or is called as in the
// file whether it is there says the server; else it is the server's only one where its parameters
// are those of the file. What is not there is made from the file.
absl::StatusOr<CreateResult> FindOrCreate(Session& session, const ImportOptions& options) {
  const absl::StatusOr<std::string> file =
      OptunaStudyFile(options.path, options.study, session.study);
  absl::StatusOr<StudySpec> made =
      file.ok() ? ParseStudyFile(*file, options.path, StudyOverrides()) : file.status();
  const std::string name = made.ok() ? made->name : session.study;
  HPO_ASSIGN_OR_RETURN(const std::vector<StudyStatus> studies,
                       session.client.studies().ListStudies());
  for (const StudyStatus& study : studies) {
    const bool only = session.study.empty() && studies.size() == 1 && made.ok() &&
                      HasSameParameters(study.spec.space, made->space);
    if (study.spec.name == name || only) return CreateResult{study};
  }
  if (!made.ok()) return made.status();
  return session.client.studies().CreateStudy(*file, options.path, /*validate_only=*/false);
}

}  // namespace

absl::Status ImportOptuna(Session& session, const ImportOptions& options) {
  HPO_ASSIGN_OR_RETURN(const CreateResult target, FindOrCreate(session, options));
  const StudyStatus& study = target.study;
  HPO_ASSIGN_OR_RETURN(OptunaStudy read, ReadOptunaStudy(options.path, options.study, study.spec));
  const absl::StatusOr<ImportResult> result =
      session.client.trials().ImportTrials({.study = study.spec.name,
                                            .count_against_budget = options.count_against_budget,
                                            .trials = std::move(read.trials)});
  if (!result.ok()) {
    // One that was made for these trials is not left behind without them.
    if (target.created) session.client.studies().DeleteStudy(study.spec.name, "").IgnoreError();
    return Annotate(result.status(), options.path);
  }
  HPO_RETURN_IF_ERROR(Annotate(AddAttributes(session, study, read.attributes), options.path));
  if (session.json) {
    PrintJson(Json{{"study", result->study},
                   {"created", target.created},
                   {"imported_from", options.path},
                   {"added", result->num_added},
                   {"known", result->num_known},
                   {"open", read.num_open},
                   {"incomplete", read.num_incomplete},
                   {"lacking_parameters", read.num_lacking},
                   {"not_finite", read.num_not_finite},
                   {"choices_as_text", read.as_text},
                   {"attributes_left_out", read.num_unfit}},
              session.out);
  } else {
    session.out << Summary(*result, read, options.count_against_budget, target.created) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
