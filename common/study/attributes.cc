#include "common/study/attributes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

absl::Status CheckSize(absl::string_view what, absl::string_view text, const Limit& limit) {
  if (text.size() <= static_cast<size_t>(limit.most)) return absl::OkStatus();
  return Unexpected(what, absl::StrCat("at most ", limit.most, " bytes"),
                    absl::StrCat(text.size(), ": ", Quoted(text)));
}

absl::Status CheckKey(const std::string& key) {
  if (key.empty()) return Unexpected("attribute", "a key", "nothing");
  HPO_RETURN_IF_ERROR(CheckSize("attribute", key, kNameLimit));
  if (!absl::StartsWith(key, kOwnKeys)) return absl::OkStatus();
  return Unexpected("attribute", absl::StrCat("a key that does not begin with ", kOwnKeys),
                    Quoted(key));
}

// One text for one value, however it was written.
absl::StatusOr<std::string> Canonical(const std::string& key, const std::string& text) {
  const std::string what = absl::StrCat("attribute ", key);
  absl::StatusOr<nlohmann::json> json = ParseJson(text);
  if (!json.ok()) return Unexpected(what, "JSON", Quoted(text));
  std::string canonical = DumpJson(*json);
  HPO_RETURN_IF_ERROR(CheckSize(what, canonical, kTextLimit));
  return canonical;
}

absl::Status CheckTag(const std::string& tag) {
  HPO_RETURN_IF_ERROR(CheckSize("tag", tag, kNameLimit));
  const bool fits =
      !tag.empty() && !absl::StrContains(tag, ',') && tag.front() != ' ' && tag.back() != ' ';
  if (fits) return absl::OkStatus();
  return Unexpected("tag", "a word or words without a comma", Quoted(tag));
}

absl::Status ChangeTags(const AttributeChange& change, Attributes& attributes) {
  if (change.add_tags.empty() && change.remove_tags.empty()) return absl::OkStatus();
  const std::vector<std::string> before = TagsOf(attributes);
  std::set<std::string> tags(before.begin(), before.end());
  for (const std::string& tag : change.remove_tags) tags.erase(tag);
  for (const std::string& tag : change.add_tags) {
    HPO_RETURN_IF_ERROR(CheckTag(tag));
    tags.insert(tag);
  }
  attributes.erase(kTagsKey);
  if (tags.empty()) return absl::OkStatus();
  std::string text = DumpJson(nlohmann::json(tags));
  HPO_RETURN_IF_ERROR(CheckSize("tags", text, kTextLimit));
  attributes[kTagsKey] = std::move(text);
  return absl::OkStatus();
}

absl::Status ChangeNote(const AttributeChange& change, Attributes& attributes) {
  if (!change.note) return absl::OkStatus();
  attributes.erase(kNoteKey);
  if (change.note->empty()) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(CheckSize("note", *change.note, kTextLimit));
  attributes[kNoteKey] = DumpJson(*change.note);
  return absl::OkStatus();
}

}  // namespace

std::string NoteOf(const Attributes& attributes) {
  const auto found = attributes.find(kNoteKey);
  if (found == attributes.end()) return "";
  const absl::StatusOr<nlohmann::json> json = ParseJson(found->second);
  return json.ok() && json->is_string() ? json->get<std::string>() : found->second;
}

std::vector<std::string> TagsOf(const Attributes& attributes) {
  std::vector<std::string> tags;
  const auto found = attributes.find(kTagsKey);
  if (found == attributes.end()) return tags;
  const absl::StatusOr<nlohmann::json> json = ParseJson(found->second);
  if (!json.ok() || !json->is_array()) return tags;
  for (const nlohmann::json& tag : *json) {
    if (tag.is_string()) tags.push_back(tag.get<std::string>());
  }
  return tags;
}

bool HasTag(const Attributes& attributes, const std::string& tag) {
  const std::vector<std::string> tags = TagsOf(attributes);
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

Attributes UsersOwn(const Attributes& attributes) {
  Attributes own = attributes;
  std::erase_if(own, [](const auto& entry) { return absl::StartsWith(entry.first, kOwnKeys); });
  return own;
}

absl::StatusOr<Attributes> Changed(Attributes attributes, const AttributeChange& change) {
  HPO_RETURN_IF_ERROR(ChangeNote(change, attributes));
  HPO_RETURN_IF_ERROR(ChangeTags(change, attributes));
  for (const auto& [key, text] : change.set) {
    HPO_RETURN_IF_ERROR(CheckKey(key));
    if (text.empty()) {
      attributes.erase(key);
      continue;
    }
    HPO_ASSIGN_OR_RETURN(attributes[key], Canonical(key, text));
  }
  if (attributes.size() <= static_cast<size_t>(kAttributeLimit.most)) return attributes;
  return Unexpected("attributes", absl::StrCat("at most ", kAttributeLimit.most),
                    absl::StrCat(attributes.size()));
}

AttributeChange Adding(Attributes attributes) {
  AttributeChange change{.note = {}, .add_tags = TagsOf(attributes)};
  if (attributes.contains(kNoteKey)) change.note = NoteOf(attributes);
  attributes.erase(kNoteKey);
  attributes.erase(kTagsKey);
  change.set = std::move(attributes);
  return change;
}

absl::StatusOr<Attributes> CheckedAttributes(const Attributes& told) {
  return Changed({}, {.note = {}, .add_tags = {}, .remove_tags = {}, .set = told});
}

Attributes WithWhatFits(Attributes attributes, const Attributes& told) {
  for (const auto& [key, text] : told) {
    const bool room = attributes.size() < static_cast<size_t>(kAttributeLimit.most);
    if (room || attributes.contains(key)) attributes[key] = text;
  }
  return attributes;
}

nlohmann::json AttributesToJson(const Attributes& attributes) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, text] : attributes) {
    const absl::StatusOr<nlohmann::json> value = ParseJson(text);
    json[key] = value.ok() ? *value : nlohmann::json(text);
  }
  return json;
}

absl::StatusOr<Attributes> AttributesFromJson(const nlohmann::json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("expected an object, got ", DescribeJson(json)));
  }
  Attributes attributes;
  for (const auto& [key, value] : json.items()) attributes[key] = DumpJson(value);
  return attributes;
}

}  // namespace hpo
