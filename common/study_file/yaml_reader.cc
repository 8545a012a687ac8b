#include "common/study_file/yaml_reader.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/limits.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/study/joined_errors.h"
#include "yaml-cpp/eventhandler.h"

namespace hpo {
namespace {

constexpr size_t kMostShown = 60;

std::string Join(const std::string& path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

// Quoted, or tagged as a string: never a number.
bool IsText(const YAML::Node& node) {
  return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str";
}

// What came, for messages.
std::string Describe(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  if (!node.IsScalar()) return "nothing";
  const std::string& text = node.Scalar();
  if (text.size() <= kMostShown) return absl::StrCat("'", text, "'");
  return absl::StrCat("'", text.substr(0, kMostShown), "...'");
}

absl::Status Expected(const YamlValue& value, absl::string_view expected) {
  return value.Error(absl::StrCat("expected ", expected, ", got ", Describe(value.node)));
}

bool ParseFinite(const std::string& text, double& number) {
  return absl::SimpleAtod(text, &number) && std::isfinite(number);
}

// Notes where each document starts.
class StartRecorder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { starts.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  std::vector<YAML::Mark> starts;
};

// The starts of the first two documents at most. YAML::LoadAll will not do: from a stray comma it
// makes empty documents without end. Throws YAML::Exception.
std::vector<YAML::Mark> DocumentStarts(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StartRecorder recorder;
  while (recorder.starts.size() < 2 && parser.HandleNextDocument(recorder)) {
  }
  return recorder.starts;
}

// The place after `text`, which is UTF-8, counting characters as yaml-cpp does.
YAML::Mark MarkAfter(absl::string_view text) {
  YAML::Mark mark;
  for (const char byte : text) {
    const bool continues = (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
    if (byte == '\n') {
      ++mark.line;
      mark.column = 0;
    } else if (!continues) {
      ++mark.column;
    }
  }
  return mark;
}

}  // namespace

absl::Status YamlValue::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(document->Place(mark), ": ", path, path.empty() ? "" : ": ", message));
}

absl::Status YamlValue::Locate(const absl::Status& status) const {
  return Annotate(status, document->Place(mark));
}

absl::StatusOr<YamlDocument> YamlDocument::Parse(absl::string_view text, absl::string_view origin) {
  YamlDocument document;
  document.origin_ = std::string(origin);
  if (text.size() > static_cast<size_t>(kStudyFileLimit.most)) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": expected at most 1 MiB of YAML, got ", text.size(), " bytes"));
  }
  const size_t valid = ValidUtf8Prefix(text);
  if (valid < text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        document.Place(MarkAfter(text.substr(0, valid))), ": expected UTF-8, got the byte 0x",
        absl::Hex(static_cast<uint8_t>(text[valid]), absl::kZeroPad2)));
  }
  try {
    const std::vector<YAML::Mark> starts = DocumentStarts(std::string(text));
    if (starts.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(document.Place(YAML::Mark()), ": expected a YAML document, got none"));
    }
    if (starts.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          document.Place(starts[1]), ": expected the end of the one YAML document, got more"));
    }
    document.root_ = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(document.Place(error.mark), ": expected YAML: ", error.msg));
  }
  return document;
}

YamlValue YamlDocument::root() { return YamlValue{root_, root_.Mark(), "", this}; }

std::string YamlDocument::Place(const YAML::Mark& mark) const {
  const YAML::Mark known = mark.is_null() ? YAML::Mark() : mark;
  return absl::StrCat(origin_, ":", known.line + 1, ":", known.column + 1);
}

std::string YamlDocument::PlaceOfPath(absl::string_view message) const {
  std::string path(message.substr(0, message.find(": ")));
  while (!path.empty()) {
    const auto found = places_.find(path);
    if (found != places_.end()) return Place(found->second);
    const size_t dot = path.rfind('.');
    path = dot == std::string::npos ? "" : path.substr(0, dot);
  }
  return Place(YAML::Mark());
}

absl::Status YamlDocument::AtPath(const absl::Status& status) const {
  if (status.ok()) return status;
  absl::Status located;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    located = Both(located, Annotate(absl::Status(status.code(), line), PlaceOfPath(line)));
  }
  return located;
}

absl::StatusOr<std::string> ReadString(const YamlValue& value) {
  if (!value.node.IsScalar()) return Expected(value, "text");
  return value.node.Scalar();
}

absl::StatusOr<ParamValue> ReadParam(const YamlValue& value) {
  if (value.node.IsNull()) return ParamValue(Null());
  if (!value.node.IsScalar()) return Expected(value, "a value");
  const std::string& text = value.node.Scalar();
  if (IsText(value.node)) return ParamValue(text);
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "true" || lower == "false") return ParamValue(lower == "true");
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  int64_t integer = 0;
  if (numeric && absl::SimpleAtoi(text, &integer)) return ParamValue(integer);
  double number = 0.0;
  if (numeric && ParseFinite(text, number)) return ParamValue(number);
  return ParamValue(text);
}

absl::StatusOr<bool> ReadBool(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const ParamValue param, ReadParam(value));
  if (const bool* flag = std::get_if<bool>(&param)) return *flag;
  return Expected(value, "true or false");
}

absl::StatusOr<int64_t> ReadInt(const YamlValue& value) {
  if (!value.node.IsScalar()) return Expected(value, "an integer");
  HPO_ASSIGN_OR_RETURN(const ParamValue param, ReadParam(value));
  if (const int64_t* integer = std::get_if<int64_t>(&param)) return *integer;
  return Expected(value, "an integer");
}

absl::StatusOr<uint64_t> ReadUnsigned(const YamlValue& value) {
  uint64_t number = 0;
  const bool readable = value.node.IsScalar() && !IsText(value.node);
  if (readable && absl::SimpleAtoi(value.node.Scalar(), &number)) return number;
  return Expected(value, "an integer >= 0");
}

absl::StatusOr<double> ReadDouble(const YamlValue& value) {
  if (!value.node.IsScalar()) return Expected(value, "a number");
  HPO_ASSIGN_OR_RETURN(const ParamValue param, ReadParam(value));
  if (const std::optional<double> number = AsNumber(param)) return *number;
  return Expected(value, "a number");
}

absl::StatusOr<std::vector<YamlValue>> ReadList(const YamlValue& value) {
  if (!value.node.IsSequence()) return Expected(value, "a list");
  std::vector<YamlValue> elements;
  for (const YAML::Node& element : value.node) {
    elements.push_back(YamlValue{element, element.Mark(),
                                 absl::StrCat(value.path, "[", elements.size(), "]"),
                                 value.document});
  }
  return elements;
}

absl::StatusOr<std::vector<std::string>> ReadStrings(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, ReadList(value));
  std::vector<std::string> strings;
  for (const YamlValue& element : elements) {
    HPO_ASSIGN_OR_RETURN(std::string text, ReadString(element));
    strings.push_back(std::move(text));
  }
  return strings;
}

YamlMap::YamlMap(const YamlValue& value)
    : value_(value), status_(ReadEntries()), is_mapping_(status_.ok()) {
  // What was not read to its end has no unknown keys.
  if (!status_.ok()) entries_.clear();
}

absl::Status YamlMap::ReadEntries() {
  std::map<std::string, YAML::Mark>& places = value_.document->places_;
  places.emplace(value_.path, value_.mark);
  if (!value_.node.IsMap()) return Expected(value_, "a mapping");
  std::map<std::string, int> first_line;
  for (const auto& pair : value_.node) {
    const YamlValue key{pair.first, pair.first.Mark(), value_.path, value_.document};
    if (!key.node.IsScalar()) return Expected(key, "a key that is text");
    const std::string& name = key.node.Scalar();
    const auto [first, added] = first_line.emplace(name, key.node.Mark().line + 1);
    if (!added) {
      return key.Error(
          absl::StrCat("expected each key once, got '", name, "' as in line ", first->second));
    }
    const YAML::Mark mark = pair.second.IsNull() ? key.mark : pair.second.Mark();
    const YamlValue value{pair.second, mark, Join(value_.path, name), value_.document};
    places.emplace(value.path, mark);
    entries_.push_back(Entry{name, key.mark, value, false});
  }
  return absl::OkStatus();
}

std::optional<YamlValue> YamlMap::Take(const char* key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.push_back(key);
  for (Entry& entry : entries_) {
    if (entry.key != key) continue;
    entry.known = true;
    return entry.value;
  }
  return std::nullopt;
}

std::optional<YamlValue> YamlMap::Require(const char* key) {
  std::optional<YamlValue> value = Take(key);
  if (!value.has_value()) Fail(value_.Error(absl::StrCat("expected a key '", key, "', got none")));
  return value;
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::TakeAll() {
  std::vector<std::pair<std::string, YamlValue>> all;
  for (Entry& entry : entries_) {
    entry.known = true;
    all.emplace_back(entry.key, entry.value);
  }
  return all;
}

void YamlMap::Fail(const absl::Status& status) {
  if (is_mapping_) status_ = Both(status_, status);
}

absl::Status YamlMap::Finish() {
  for (const Entry& entry : entries_) {
    if (entry.known) continue;
    const YamlValue key{entry.value.node, entry.key_mark, entry.value.path, value_.document};
    Fail(key.Error(absl::StrCat("unknown key '", entry.key, "'", Suggest(entry.key, asked_))));
  }
  return status_;
}

std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string suggestion = DidYouMean(word, candidates);
  if (!suggestion.empty()) return suggestion;
  return absl::StrCat("; expected one of ", absl::StrJoin(candidates, ", "));
}

}  // namespace hpo
