// Strict reading of JSON objects into plain values: every error names the member at fault by its
// path, what was expected and what came. Members that nobody asks for are ignored, so that newer
// writers can add some.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {

// Parses one JSON text. Never throws.
//   InvalidArgument  not JSON; names the byte where reading stopped
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

// One line of JSON. Bytes that are not UTF-8 become U+FFFD, numbers that are not finite null.
std::string DumpJson(const nlohmann::json& json);

// "the integer 3", "the string \"abc\"", "null": what came, for error messages; cut when long.
std::string DescribeJson(const nlohmann::json& json);

// InvalidArgument "where: expected this, got the integer 3".
absl::Status UnexpectedJson(absl::string_view where, absl::string_view expected,
                            const nlohmann::json& got);

// Reads an array, each element through `parse`; errors name the element's index.
//   InvalidArgument  not an array, or what `parse` says
template <typename Element>
absl::StatusOr<std::vector<Element>> ArrayFromJson(
    const nlohmann::json& json, absl::StatusOr<Element> (*parse)(const nlohmann::json&)) {
  if (!json.is_array()) {
    return absl::InvalidArgumentError(absl::StrCat("expected an array, got ", DescribeJson(json)));
  }
  std::vector<Element> elements;
  for (const nlohmann::json& member : json) {
    absl::StatusOr<Element> element = parse(member);
    if (!element.ok()) return Annotate(element.status(), absl::StrCat("[", elements.size(), "]"));
    elements.push_back(*std::move(element));
  }
  return elements;
}

// Reads an object of like members, each through `parse`; errors name the member.
//   InvalidArgument  not an object, or what `parse` says
template <typename Element>
absl::StatusOr<std::map<std::string, Element>> MapFromJson(
    const nlohmann::json& json, absl::StatusOr<Element> (*parse)(const nlohmann::json&)) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("expected an object, got ", DescribeJson(json)));
  }
  std::map<std::string, Element> elements;
  for (const auto& [key, member] : json.items()) {
    absl::StatusOr<Element> element = parse(member);
    if (!element.ok()) return Annotate(element.status(), key);
    elements.emplace(key, *std::move(element));
  }
  return elements;
}

// Reads members of one object and remembers the first error; once there is one, later reads do
// nothing. Holds a reference to the object, which must outlive it. Not thread-safe.
//
//   JsonReader reader(json, "plan");
//   reader.Required("micro_batch", plan.micro_batch);
//   reader.Optional("checkpointing", plan.checkpointing);
//   HPO_RETURN_IF_ERROR(reader.status());
class JsonReader {
 public:
  // `path` is what errors start with; empty for a top-level object.
  JsonReader(const nlohmann::json& object, absl::string_view path);

  // The member must be there and of the type of `out`. A double takes integers, and null as NaN;
  // doubles by name also take "NaN", "Infinity" and "-Infinity", as protobuf's JSON has them. Bytes
  // take integers >= 0, durations seconds, and an optional takes null.
  template <typename T>
  void Required(const char* key, T& out) {
    if (const nlohmann::json* member = Find(key, /*required=*/true)) Convert(key, *member, out);
  }

  // As Required, but `out` keeps its value where the member is absent or null.
  template <typename T>
  void Optional(const char* key, T& out) {
    if (const nlohmann::json* member = Find(key, /*required=*/false)) Convert(key, *member, out);
  }

  // The member through `parse`, a function from JSON to StatusOr<T>; its error gets the path.
  template <typename T, typename Parse>
  void RequiredWith(const char* key, T& out, Parse parse) {
    if (const nlohmann::json* member = Find(key, /*required=*/true)) {
      Assign(key, parse(*member), out);
    }
  }
  template <typename T, typename Parse>
  void OptionalWith(const char* key, T& out, Parse parse) {
    if (const nlohmann::json* member = Find(key, /*required=*/false)) {
      Assign(key, parse(*member), out);
    }
  }

  // Whether the object has a member `key`, be it null.
  bool Has(const char* key) const;

  // Records `message` about member `key`, unless there is an error already.
  void Fail(absl::string_view key, absl::string_view message);

  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* key, bool required);
  void Expected(const char* key, absl::string_view expected, const nlohmann::json& got);

  void Convert(const char* key, const nlohmann::json& json, bool& out);
  void Convert(const char* key, const nlohmann::json& json, int64_t& out);
  void Convert(const char* key, const nlohmann::json& json, uint64_t& out);
  void Convert(const char* key, const nlohmann::json& json, double& out);
  void Convert(const char* key, const nlohmann::json& json, std::string& out);
  void Convert(const char* key, const nlohmann::json& json, Bytes& out);
  void Convert(const char* key, const nlohmann::json& json, absl::Duration& out);
  void Convert(const char* key, const nlohmann::json& json, std::vector<std::string>& out);
  void Convert(const char* key, const nlohmann::json& json, std::map<std::string, double>& out);
  template <typename T>
  void Convert(const char* key, const nlohmann::json& json, std::optional<T>& out) {
    if (!json.is_null()) Convert(key, json, out.emplace());
  }

  template <typename T, typename U>
  void Assign(const char* key, absl::StatusOr<U> parsed, T& out) {
    if (parsed.ok()) {
      out = *std::move(parsed);
    } else {
      Fail(key, parsed.status().message());
    }
  }

  const nlohmann::json& object_;
  std::string path_;
  absl::Status status_;
};

// One form of an object that has several, by the name that its `key` member gives it.
template <typename T>
struct NamedForm {
  const char* name;
  T (*read)(JsonReader&);
};

// Reads an object in the form that its member `key` names; errors begin with that name.
//   InvalidArgument  not an object, no such form (lists those that there are), or what reading says
template <typename T, size_t kCount>
absl::StatusOr<T> FormFromJson(const nlohmann::json& json, const char* key,
                               const NamedForm<T> (&forms)[kCount]) {
  JsonReader reader(json, "");
  std::string name;
  reader.Required(key, name);
  HPO_RETURN_IF_ERROR(reader.status());
  std::vector<std::string> known;
  for (const NamedForm<T>& form : forms) {
    known.push_back(form.name);
    if (name != form.name) continue;
    T value = form.read(reader);
    if (!reader.status().ok()) return Annotate(reader.status(), name);
    return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      key, ": expected one of ", absl::StrJoin(known, ", "), ", got ", DescribeJson(json[key])));
}

}  // namespace hpo
