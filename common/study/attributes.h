// What people and programs note of a study or of one of its trials: a JSON value by key. Notes and
// tags are such values, under keys of our own. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// A value as the text of its JSON, by key.
using Attributes = std::map<std::string, std::string>;

// Keys that begin with this are ours: programs and people set them by commands only.
constexpr absl::string_view kOwnKeys = "hpo.";
constexpr char kNoteKey[] = "hpo.note";         // text
constexpr char kTagsKey[] = "hpo.tags";         // a list of texts, in order, each once
constexpr char kRetryOfKey[] = "hpo.retry_of";  // number of the trial that a retry began with

// Empty where there is none.
std::string NoteOf(const Attributes& attributes);
std::vector<std::string> TagsOf(const Attributes& attributes);
bool HasTag(const Attributes& attributes, const std::string& tag);
// Those whose keys are not ours.
Attributes UsersOwn(const Attributes& attributes);

struct AttributeChange {
  std::optional<std::string> note;  // empty: there is none any more
  std::vector<std::string> add_tags;
  std::vector<std::string> remove_tags;
  Attributes set;  // an empty text: the attribute goes
  bool operator==(const AttributeChange&) const = default;
};

// `attributes` after `change`.
//   InvalidArgument  a key of ours or none, a value that is not JSON, an empty tag or one with a
//                    comma, or more than common/base/limits.h allows
absl::StatusOr<Attributes> Changed(Attributes attributes, const AttributeChange& change);
// The change that adds them all, note and tags among them.
AttributeChange Adding(Attributes attributes);

// What a trainer tells, as it is stored.
//   InvalidArgument  as Changed
absl::StatusOr<Attributes> CheckedAttributes(const Attributes& told);
// As much of `told` as there is room for: a result counts more than what was noted of it.
Attributes WithWhatFits(Attributes attributes, const Attributes& told);

// An object of values, not of their texts.
nlohmann::json AttributesToJson(const Attributes& attributes);
//   InvalidArgument  not an object
absl::StatusOr<Attributes> AttributesFromJson(const nlohmann::json& json);

}  // namespace hpo
