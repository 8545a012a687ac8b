// `hpo-trainer tokenize`: JSON lines of texts become JSON lines of token ids.
#pragma once

#include <istream>
#include <ostream>

#include "absl/status/status.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// Reads {"text": ..., "pair": ...?} a line from `in` and writes {"ids": [...], "type_ids": [...]} a
// line to `out`, special tokens included, nothing truncated. Other keys, and lines of white space
// alone, are skipped. What came before a bad line has been written.
//   InvalidArgument  a line that is not such an object, is not UTF-8 or is above kMaxRecordBytes;
//                    names its number and what was expected
//   Unavailable      reading or writing failed
absl::Status TokenizeLines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out);

}  // namespace hpo::text
