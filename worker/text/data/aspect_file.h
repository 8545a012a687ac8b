// Reads files of texts with aspects: JSON lines as the DimABSA task gives them,
//   {"Text": "the wine was good .", "Quadruplet": [{"Aspect": "wine", "Category": "DRINKS#QUALITY",
//    "Opinion": "good", "VA": "7.05#5.56"}]}
// "text" and "aspects" are taken for the first two names, other members ignored. "Opinion" may be
// missing. No torch, no tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

struct Aspect {
  std::string name;      // as the text has it; empty: the text does not say it
  std::string opinion;   // likewise
  std::string question;  // what is asked of the text: the aspect, and its opinion where it has one
  std::string category;  // the class; not empty
  float valence = 0.0f;
  float arousal = 0.0f;
  bool operator==(const Aspect&) const = default;
};

struct AspectRow {
  std::string text;
  std::vector<Aspect> aspects;  // one or more
  int64_t line = 0;             // from 1
  bool operator==(const AspectRow&) const = default;
};

struct AspectFile {
  std::string path;
  std::vector<AspectRow> rows;
};

// The distinct classes, in byte order.
std::vector<std::string> ClassesOf(const AspectFile& file);

// Reads a whole file.
//   NotFound, Unavailable  as ReadFile (common/base/read_file.h)
//   InvalidArgument        no rows; a line that is no object of UTF-8; a member missing or of
//                          another type; a row without aspects; a VA that is not two numbers with
//                          '#' between. Names file, line and member.
absl::StatusOr<AspectFile> ReadAspectFile(const std::string& path);
absl::StatusOr<AspectFile> ParseAspectLines(absl::string_view content, const std::string& origin);

}  // namespace hpo
