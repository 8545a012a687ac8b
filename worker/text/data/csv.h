// Records of comma-separated values, RFC 4180.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

struct CsvRecord {
  std::vector<std::string> fields;
  int64_t line = 0;  // where the record starts, from 1
};

// Reads one record after the other. `content` and `origin` must outlive the scanner.
class CsvScanner {
 public:
  CsvScanner(absl::string_view content, const std::string& origin)
      : rest_(content), origin_(origin) {}

  // Reads the next record into `record`; false at the end. Empty lines are skipped.
  //   InvalidArgument  a quote inside an unquoted field or text after a closing one, a quote that
  //                    is never closed, a lone carriage return; names line and field
  absl::StatusOr<bool> Next(CsvRecord& record);

 private:
  enum class FieldEnd { kComma, kRecord };

  bool SkipLineEnd();
  absl::StatusOr<FieldEnd> ReadField(std::string& field, size_t number);
  absl::Status ReadQuoted(std::string& field, size_t number);
  absl::Status ReadPlain(std::string& field, size_t number);

  absl::string_view rest_;
  const std::string& origin_;
  int64_t line_ = 1;
};

}  // namespace hpo
