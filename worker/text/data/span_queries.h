// Where in a row of tokens the answers of a question about a text lie. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/text/data/aspect_file.h"
#include "worker/text/data/text_questions.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// A place of an answer. One that occurs several times in the text has a place for each.
struct AnswerSpan {
  TokenRange tokens;   // of the row; beyond SpanQuery::text where they are cut off
  int32_t phrase = 0;  // which answer, from 0
  bool operator==(const AnswerSpan&) const = default;
};

struct SpanQuery {
  TextQuestion::Asks asks = TextQuestion::Asks::kClass;
  // Of kAspects and kOpinions alone.
  TokenRange text = {};  // the text's tokens in the row, as many as are kept
  std::vector<AnswerSpan> answers = {};
  bool operator==(const SpanQuery&) const = default;
};

struct SpanQueries {
  std::vector<SpanQuery> queries;  // one for each of QuestionsOf(row, true), row by row
  // Names of aspects and opinions, as often as a row has them, and those that do not occur in their
  // texts: they have no span, as what the text does not say has none.
  int64_t phrases = 0;
  int64_t unplaced = 0;
};

// Finds the answers of every row's questions. `max_length`: at which the queries are cut off.
//   InvalidArgument  no row has an aspect, or none an opinion, that occurs in its text; names the
//                    file
absl::StatusOr<SpanQueries> FindSpans(const AspectFile& file, const Tokenizer& tokenizer,
                                      int64_t max_length);

}  // namespace hpo::text
