// Texts of which several questions are asked, as token ids: every question with its text is a
// query, a row for the model. Which queries run together, and with how much padding, are three
// remedies against running out of memory: leave outliers out (LoadQuerySets), pad to the batch's
// own maximum or not at all, and run a few at a time. Results are equal whatever the layout. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/models/workload.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/batching/encoded_dataset.h"
#include "worker/text/data/span_queries.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// In place of a class, and of numbers that are 0: of queries for spans, which have none.
constexpr int64_t kNoClass = -100;

struct QuerySet {
  EncodedDataset queries;      // the tokens of each, and its class as its label
  std::vector<float> numbers;  // [queries, 2]: valence and arousal
  SpanQueries spans;           // without queries where no spans are asked for
  // Text i asks the queries [offsets[i], offsets[i + 1]), one or more.
  std::vector<int64_t> offsets;
  int64_t most_queries = 0;  // of any text

  bool AsksForSpans() const { return !spans.queries.empty(); }
  int64_t num_texts() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t NumQueries(int64_t text) const {
    return offsets[static_cast<size_t>(text) + 1] - offsets[static_cast<size_t>(text)];
  }
};

// How many queries a text of a batch is given: its own, as many as any of the batch has, or as any
// of the whole file has.
enum class QueryPadding { kNone, kBatch, kCorpus };

//   InvalidArgument  another word than none, batch and corpus
absl::StatusOr<QueryPadding> ParseQueryPadding(absl::string_view word);

struct QueryLayout {
  QueryPadding padding = QueryPadding::kNone;
  int64_t at_once = 0;  // queries that run together; 0: all of a part of a batch
};

// The queries of these texts, in the order of the texts, in pieces of layout.at_once. Padding comes
// after all of them: the first query again, as its complement (~number). Pieces of padding alone,
// which answer nothing, are left out. A function of the texts and the layout alone.
std::vector<BatchRows> QueryPieces(const QuerySet& set, const QueryLayout& layout,
                                   std::span<const int64_t> texts);

// One piece as dense arrays: padding runs too, but has no labels and no numbers. Of a set that asks
// for spans every query has them, kNoClass and zeros where it is not asked for its class, and the
// tokens of its text weigh alike where it is asked for spans, together 1.
TokenBatch PadQueries(const QuerySet& set, std::span<const int64_t> piece, int64_t max_positions);
int64_t PaddedLength(const QuerySet& set, std::span<const int64_t> piece, int64_t max_positions);

// What the texts are to a batcher: rows as long as all their queries' tokens, so that texts of like
// cost meet.
EncodedDataset TextsOf(const QuerySet& set);

// Some of the texts: those of these numbers, in this order.
QuerySet SelectTexts(const QuerySet& set, std::span<const int64_t> texts);

// Texts by the number of their queries.
LengthHistogram QueryCounts(const QuerySet& set);

struct QuerySets {
  std::vector<std::string> labels;  // the classes, then "valence" and "arousal"
  QuerySet train;
  QuerySet validation;
  std::vector<AspectRow> validation_texts;  // where spans are asked for
};

// Turns rows into tokens, as EncodeDataset or a TokenCache does.
using RowEncoder = absl::FunctionRef<absl::StatusOr<EncodedDataset>(const Dataset&)>;

struct QueryOptions {
  std::vector<std::string> labels;  // the classes; empty: those of the training file, sorted
  int64_t most_aspects = 0;         // training texts of more are left out; 0: none is
  // Where spans are asked for: what `encode` uses, and where it cuts texts off.
  const Tokenizer* span_tokenizer = nullptr;
  int64_t max_length = 0;
};

// Reads both files (aspect_file.h) and has every question (text_questions.h) tokenized with its
// text by `encode`.
//   NotFound, Unavailable, InvalidArgument  as ReadAspectFile; a class of either file that the list
//                                           lacks; no training text left; as `encode`, FindSpans
absl::StatusOr<QuerySets> LoadQuerySets(const std::string& train_path,
                                        const std::string& validation_path,
                                        const QueryOptions& options, RowEncoder encode);

}  // namespace hpo::text
