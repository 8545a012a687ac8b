#include "cli/commands/studies/annotate_command.h"

#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "cli/render/wording.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNameColumns = 12;

// What is no JSON is a text: --set who=me needs no second pair of quotes.
std::string ValueText(const std::string& word) {
  const absl::StatusOr<nlohmann::json> json = ParseJson(word);
  return DumpJson(json.ok() ? *json : nlohmann::json(word));
}

absl::StatusOr<AttributeChange> ChangeOf(const AnnotateOptions& options) {
  AttributeChange change{
      .note = options.note, .add_tags = options.tags, .remove_tags = options.untags, .set = {}};
  for (const std::string& word : options.set) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set: expected KEY=VALUE, got '", word, "'"));
    }
    change.set[word.substr(0, equals)] = ValueText(word.substr(equals + 1));
  }
  for (const std::string& key : options.unset) change.set[key] = "";
  if (change == AttributeChange{}) {
    return absl::InvalidArgumentError(
        "expected --note, --tag, --untag, --set or --unset, got none");
  }
  return change;
}

}  // namespace

absl::Status ChangeAttributes(Session& session, const AnnotateOptions& options) {
  HPO_ASSIGN_OR_RETURN(const AttributeChange change, ChangeOf(options));
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const Attributes attributes,
                       session.client.studies().ChangeAttributes(name, options.trial, change));
  if (session.json) {
    Json json = {{"study", name},
                 {"trial", options.trial ? Json(options.trial->value) : Json(nullptr)},
                 {"note", NoteOf(attributes)},
                 {"tags", TagsOf(attributes)},
                 {"attributes", Json(AttributesToJson(UsersOwn(attributes)))}};
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  session.out << (options.trial ? absl::StrCat("trial ", Hash(*options.trial), " of ") : "study ")
              << name << "\n"
              << AttributeLines(attributes, kNameColumns);
  return absl::OkStatus();
}

}  // namespace hpo::cli
