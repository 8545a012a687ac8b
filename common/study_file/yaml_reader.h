// Strict reading of one YAML document into plain values: every error starts with file:line:column,
// names the key by its path, and says what was expected and what came. Unknown and duplicate keys
// are errors. No exception of yaml-cpp leaves these functions.
//
// A YamlValue refers to the YamlDocument it came from, which must outlive it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"
#include "yaml-cpp/yaml.h"

namespace hpo {

class YamlDocument;

// A node and its path, such as "parameters.train.lr".
struct YamlValue {
  YAML::Node node;
  YAML::Mark mark;  // where the value stands; of a key with nothing after it, the key
  std::string path;
  YamlDocument* document = nullptr;

  // InvalidArgument "file:line:column: path: message", at this value.
  absl::Status Error(absl::string_view message) const;

  // `status`, which names the path itself, with "file:line:column" put in front. OK stays OK.
  absl::Status Locate(const absl::Status& status) const;
};

class YamlDocument {
 public:
  // Parses `text`, which must hold exactly one document, in UTF-8, of at most 1 MiB. `origin` is
  // the file's name in errors.
  //   InvalidArgument  not UTF-8, not YAML, or not one document
  static absl::StatusOr<YamlDocument> Parse(absl::string_view text, absl::string_view origin);

  YamlValue root();

  // `status`, each line of which starts with "path: ", with the place of that path put in front:
  // that of the nearest enclosing value that the document has. OK stays OK.
  absl::Status AtPath(const absl::Status& status) const;

 private:
  friend struct YamlValue;
  friend class YamlMap;

  std::string Place(const YAML::Mark& mark) const;
  std::string PlaceOfPath(absl::string_view message) const;

  std::string origin_;
  YAML::Node root_;
  std::map<std::string, YAML::Mark> places_;  // of the values read so far, by path
};

//   InvalidArgument  the value is not of that type
absl::StatusOr<std::string> ReadString(const YamlValue& value);
absl::StatusOr<bool> ReadBool(const YamlValue& value);
absl::StatusOr<int64_t> ReadInt(const YamlValue& value);
absl::StatusOr<uint64_t> ReadUnsigned(const YamlValue& value);
absl::StatusOr<double> ReadDouble(const YamlValue& value);
absl::StatusOr<std::vector<YamlValue>> ReadList(const YamlValue& value);
absl::StatusOr<std::vector<std::string>> ReadStrings(const YamlValue& value);

// A scalar as a parameter value: true and false are booleans, 3 an integer, 3.0 and 3e-5 real
// numbers, null and ~ (and nothing at all) null, anything else and everything quoted text.
absl::StatusOr<ParamValue> ReadParam(const YamlValue& value);

// One mapping, read key by key. Collects the errors of its values, which Finish returns, a line
// each.
class YamlMap {
 public:
  // What is no mapping, or has a key twice or a key that is no text, is the only error: then later
  // reads do nothing.
  explicit YamlMap(const YamlValue& value);

  // The value of `key` through `parse`, a function from YamlValue to StatusOr<T>. `out` keeps its
  // value where there is no such key.
  template <typename T, typename Parse>
  void Read(const char* key, T& out, Parse parse) {
    const std::optional<YamlValue> value = Take(key);
    if (!value.has_value()) return;
    auto parsed = parse(*value);
    if (parsed.ok()) {
      out = *std::move(parsed);
    } else {
      Fail(parsed.status());
    }
  }

  // The value of `key`, which counts as known from now on; nullopt where there is none.
  std::optional<YamlValue> Take(const char* key);

  // As Take, but its absence is an error.
  std::optional<YamlValue> Require(const char* key);

  // All values with their keys in the file's order; all count as known.
  std::vector<std::pair<std::string, YamlValue>> TakeAll();

  void Fail(const absl::Status& status);

  // The errors, unknown keys with a suggestion among them.
  absl::Status Finish();

 private:
  struct Entry {
    std::string key;
    YAML::Mark key_mark;
    YamlValue value;
    bool known = false;
  };

  absl::Status ReadEntries();

  YamlValue value_;
  std::vector<Entry> entries_;
  std::vector<std::string> asked_;
  absl::Status status_;  // the errors; set last, by ReadEntries
  const bool is_mapping_;
};

// "; did you mean 'X'?" for the candidate nearest to `word`, or "; expected one of X, Y" where none
// is near.
std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace hpo
