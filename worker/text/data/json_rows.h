// The rows of a JSON file: one object a line, as JSON lines have them; one array of objects; or
// objects that go over several lines, one after the other.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/files/text_place.h"

namespace hpo::text {

// One row as it is written.
struct JsonRowText {
  absl::string_view text;
  TextPlace begin;
};

// Reads one row after the other. `content` (UTF-8) and `origin` must outlive the splitter.
class JsonRowSplitter {
 public:
  JsonRowSplitter(absl::string_view content, const std::string& origin);

  // Reads the next row into `row`; false at the end. Empty lines are skipped, and byte order marks
  // between rows.
  //   InvalidArgument  an array without commas between its rows, without its end, or with something
  //                    after it; an object over several lines that does not end; a row above
  //                    kMaxRecordBytes (readers.h). Names line and column.
  absl::StatusOr<bool> Next(JsonRowText& row);

 private:
  enum class Form { kLines, kArray, kObjects };

  absl::StatusOr<bool> NextLine(JsonRowText& row);
  absl::StatusOr<bool> NextValue(JsonRowText& row);
  absl::Status ReadComma();
  absl::Status CheckEnd() const;
  absl::Status Unexpected(absl::string_view expected) const;
  // Moves on by `size` bytes.
  void Take(size_t size);
  void TakeSpace();

  absl::string_view rest_;
  const std::string& origin_;
  TextPlace place_;  // of the beginning of rest_
  Form form_ = Form::kLines;
  bool first_ = true;
  bool ended_ = false;
};

// Parses the object of a row. Escapes of half a character ("\ud83d" alone) and of NUL become
// U+FFFD, and are added to `replaced`.
//   InvalidArgument  not JSON, no object, a field of the object given twice; names line, column,
//                    what stands there and what to do
absl::StatusOr<nlohmann::json> ParseJsonRow(const JsonRowText& row, const std::string& origin,
                                            ReplacedCharacters& replaced);

// The member `name` of an object, in any case; one in this very case is preferred. Null: none, or
// the value null.
const nlohmann::json* FindField(const nlohmann::json& object, absl::string_view name);

// "'sentence', 'label'": the names of an object's members, those of null marked, or "no fields".
std::string FieldNames(const nlohmann::json& object);

// The text of a row (field_names.h).
//   InvalidArgument  there is none, or it is no string: says what came. Names no place.
absl::StatusOr<std::string> RowText(const nlohmann::json& object);

}  // namespace hpo::text
