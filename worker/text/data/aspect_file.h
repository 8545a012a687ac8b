// Reads files of texts with aspects: JSON lines as the DimABSA task gives them,
//   {"Text": "the wine was good .", "Quadruplet": [{"Aspect": "wine", "Category": "DRINKS#QUALITY",
//    "Opinion": "good", "VA": "7.05#5.56"}]}
// "text" and "aspects" are taken for the first two names, other members but "ID" ignored. "Opinion"
// may be missing. Writes what a model says of them in the same format. No torch, no tokenizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

struct Aspect {
  std::string name;      // as the text has it; empty: the text does not say it
  std::string opinion;   // likewise
  std::string question;  // what is asked of the text: ClassQuestion of the two
  std::string category;  // the class; not empty
  float valence = 0.0f;
  float arousal = 0.0f;
  bool operator==(const Aspect&) const = default;
};

struct AspectRow {
  std::string text;
  std::vector<Aspect> aspects;  // one or more
  int64_t line = 0;             // from 1
  std::string id = {};          // the member "ID" as JSON; empty: none
  bool operator==(const AspectRow&) const = default;
};

// By what the class, valence and arousal of an aspect with its opinion are asked for: both, or the
// aspect alone where the text says no opinion. Empty: the text does not say it.
std::string ClassQuestion(const std::string& aspect, const std::string& opinion);

struct AspectFile {
  std::string path;
  std::vector<AspectRow> rows;
  std::vector<std::string> warnings = {};  // sentences that name file, line and column
};

// The distinct classes, in byte order.
std::vector<std::string> ClassesOf(const AspectFile& file);

// Reads a whole file.
//   NotFound, Unavailable  as ReadFile (common/files/read_file.h)
//   InvalidArgument        no rows; a line that is no object of UTF-8; a member missing or of
//                          another type; a row without aspects; a VA that is not two numbers with
//                          '#' between. Names file, line and member.
absl::StatusOr<AspectFile> ReadAspectFile(const std::string& path);
absl::StatusOr<AspectFile> ParseAspectLines(absl::string_view content, const std::string& origin);

// One line of the text of `row` with `aspects`, none or more, instead of its own: as the DimABSA
// task wants answers handed in, and with one or more as ParseAspectLines reads it. Valence and
// arousal have two decimals. All is UTF-8.
std::string FormatAspectLine(const AspectRow& row, std::span<const Aspect> aspects);

}  // namespace hpo::text
