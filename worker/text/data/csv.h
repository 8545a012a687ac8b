// Records of comma-separated values, RFC 4180; other separators than the comma are taken, and a
// lone carriage return as the end of a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {

struct CsvRecord {
  std::vector<std::string> fields;
  int64_t line = 0;  // where the record starts, from 1
};

// Reads one record after the other. `content` (UTF-8) and `origin` must outlive the scanner.
class CsvScanner {
 public:
  CsvScanner(absl::string_view content, const std::string& origin, char separator = ',')
      : rest_(content), origin_(origin), separator_(separator) {}

  // Reads the next record into `record`; false at the end. Empty lines are skipped.
  //   InvalidArgument  a quote inside an unquoted field or text after a closing one, a quote that
  //                    is never closed; names line, column and field
  absl::StatusOr<bool> Next(CsvRecord& record);

 private:
  enum class FieldEnd { kSeparator, kRecord };

  bool SkipLineEnd();
  absl::StatusOr<FieldEnd> ReadField(std::string& field, size_t number);
  absl::Status ReadQuoted(std::string& field, size_t number);
  absl::Status ReadPlain(std::string& field, size_t number);
  // Moves on by `size` bytes.
  void Take(size_t size);

  absl::string_view rest_;
  const std::string& origin_;
  const char separator_;
  TextPlace place_;  // of the beginning of rest_
};

}  // namespace hpo::text
