#include "worker/text/batching/query_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/models/query_answers.h"
#include "worker/text/data/aspect_file.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {
namespace {

using ClassIndex = std::map<std::string, int32_t>;

// The row of one aspect's class and numbers; `classes` and their order.
absl::Status AddAnswers(const Aspect& aspect, const ClassIndex& classes, DatasetRow& row) {
  const auto found = classes.find(aspect.category);
  if (found == classes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Category: expected one of the classes of the training data or "
                     "trainer.labels, got '",
                     aspect.category, "'"));
  }
  row.labels = {found->second};
  row.numbers = {aspect.valence, aspect.arousal};
  return absl::OkStatus();
}

absl::StatusOr<QuerySet> Encode(const AspectFile& file, const ClassIndex& classes,
                                const QueryOptions& options, RowEncoder encode) {
  const bool with_spans = options.span_tokenizer != nullptr;
  QuerySet set{.offsets = {0}};
  Dataset rows{.path = file.path, .pairs = true, .warnings = file.warnings};
  for (const AspectRow& text : file.rows) {
    const std::vector<TextQuestion> questions = QuestionsOf(text, with_spans);
    for (const TextQuestion& question : questions) {
      DatasetRow row{.text = question.words,
                     .pair = text.text,
                     .labels = {static_cast<int32_t>(kNoClass)},
                     .numbers = std::vector<float>(kAspectNumbers, 0.0f),
                     .line = text.line};
      if (question.asks == TextQuestion::Asks::kClass) {
        const absl::Status known = AddAnswers(text.aspects[question.aspect], classes, row);
        if (!known.ok()) return DataError(file.path, text.line, known.message());
      }
      rows.rows.push_back(std::move(row));
    }
    const auto count = static_cast<int64_t>(questions.size());
    set.offsets.push_back(set.offsets.back() + count);
    set.most_queries = std::max(set.most_queries, count);
  }
  HPO_ASSIGN_OR_RETURN(set.queries, encode(rows));
  set.numbers = std::exchange(set.queries.numbers, {});
  if (with_spans) {
    HPO_ASSIGN_OR_RETURN(set.spans, FindSpans(file, *options.span_tokenizer, options.max_length));
  }
  return set;
}

absl::StatusOr<ClassIndex> IndexClasses(const std::vector<std::string>& classes) {
  ClassIndex index;
  for (const std::string& name : classes) {
    if (!index.emplace(name, static_cast<int32_t>(index.size())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("trainer.labels: expected each class once, got '", name, "' twice"));
    }
  }
  return index;
}

// Of the texts of a part, and of all of them.
int64_t QueriesOfEach(const QuerySet& set, QueryPadding padding, std::span<const int64_t> texts) {
  if (padding == QueryPadding::kNone) return 0;
  if (padding == QueryPadding::kCorpus) return set.most_queries;
  int64_t most = 0;
  for (const int64_t text : texts) most = std::max(most, set.NumQueries(text));
  return most;
}

int64_t QueryOf(int64_t number) { return number >= 0 ? number : ~number; }

BatchRows QueriesOf(std::span<const int64_t> piece) {
  BatchRows queries;
  for (const int64_t number : piece) queries.push_back(QueryOf(number));
  return queries;
}

// What row `row` of `batch` is to say of the tokens of its text: that the answers begin and end
// where they do. An answer of which a part is cut off is none.
void AddSpanTargets(const SpanQuery& query, size_t row, TokenBatch& batch) {
  if (query.asks == TextQuestion::Asks::kClass || query.text.begin == query.text.end) return;
  const size_t first = row * static_cast<size_t>(batch.length);
  const auto begin = static_cast<size_t>(query.text.begin);
  const auto end = static_cast<size_t>(query.text.end);
  const auto token = batch.span_weights.begin() + static_cast<std::ptrdiff_t>(first);
  std::fill(token + query.text.begin, token + query.text.end,
            1.0f / static_cast<float>(kSpanEnds * (end - begin)));
  for (const AnswerSpan& answer : query.answers) {
    if (answer.tokens.end > query.text.end) continue;
    const auto last = static_cast<size_t>(answer.tokens.end) - 1;
    batch.span_targets[kSpanEnds * (first + static_cast<size_t>(answer.tokens.begin))] = 1.0f;
    batch.span_targets[kSpanEnds * (first + last) + 1] = 1.0f;
  }
}

}  // namespace

absl::StatusOr<QueryPadding> ParseQueryPadding(absl::string_view word) {
  if (word == "none") return QueryPadding::kNone;
  if (word == "batch") return QueryPadding::kBatch;
  if (word == "corpus") return QueryPadding::kCorpus;
  return absl::InvalidArgumentError(
      absl::StrCat("expected none, batch or corpus, got '", word, "'"));
}

std::vector<BatchRows> QueryPieces(const QuerySet& set, const QueryLayout& layout,
                                   std::span<const int64_t> texts) {
  BatchRows all;
  for (const int64_t text : texts) {
    for (int64_t i = 0; i < set.NumQueries(text); ++i) {
      all.push_back(set.offsets[static_cast<size_t>(text)] + i);
    }
  }
  const size_t answered = all.size();
  const int64_t each = QueriesOfEach(set, layout.padding, texts);
  for (const int64_t text : texts) {
    for (int64_t i = set.NumQueries(text); i < each; ++i) {
      all.push_back(~set.offsets[static_cast<size_t>(text)]);
    }
  }
  if (layout.at_once == 0) return {std::move(all)};
  const auto at_once = static_cast<size_t>(layout.at_once);
  std::vector<BatchRows> pieces;
  for (size_t begin = 0; begin < answered; begin += at_once) {
    const size_t end = std::min(begin + at_once, all.size());
    pieces.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                        all.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return pieces;
}

TokenBatch PadQueries(const QuerySet& set, std::span<const int64_t> piece, int64_t max_positions) {
  TokenBatch batch = PadBatch(set.queries, QueriesOf(piece), max_positions);
  if (set.AsksForSpans()) {
    const auto tokens = static_cast<size_t>(batch.rows * batch.length);
    batch.span_targets.assign(kSpanEnds * tokens, 0.0f);
    batch.span_weights.assign(tokens, 0.0f);
  }
  for (size_t row = 0; row < piece.size(); ++row) {
    const int64_t query = piece[row];
    if (query >= 0) {
      batch.labels.push_back(set.queries.Labels(query).front());
      const auto numbers =
          std::span(set.numbers)
              .subspan(static_cast<size_t>(query * kAspectNumbers), kAspectNumbers);
      batch.label_matrix.insert(batch.label_matrix.end(), numbers.begin(), numbers.end());
      if (set.AsksForSpans()) {
        AddSpanTargets(set.spans.queries[static_cast<size_t>(query)], row, batch);
      }
    } else if (set.AsksForSpans()) {
      batch.labels.push_back(kNoClass);
      batch.label_matrix.insert(batch.label_matrix.end(), kAspectNumbers, 0.0f);
    }
  }
  return batch;
}

int64_t PaddedLength(const QuerySet& set, std::span<const int64_t> piece, int64_t max_positions) {
  return PaddedLength(set.queries, QueriesOf(piece), max_positions);
}

EncodedDataset TextsOf(const QuerySet& set) {
  EncodedDataset texts;
  texts.pad_id = set.queries.pad_id;
  texts.token_offsets = {0};
  for (int64_t text = 0; text < set.num_texts(); ++text) {
    int64_t longest = 0;
    for (int64_t i = 0; i < set.NumQueries(text); ++i) {
      longest = std::max(longest, set.queries.Length(set.offsets[static_cast<size_t>(text)] + i));
    }
    texts.token_offsets.push_back(texts.token_offsets.back() + longest * set.NumQueries(text));
  }
  return texts;
}

QuerySet SelectTexts(const QuerySet& set, std::span<const int64_t> texts) {
  QuerySet selected{.spans = {.phrases = set.spans.phrases, .unplaced = set.spans.unplaced},
                    .offsets = {0}};
  BatchRows queries;
  for (const int64_t text : texts) {
    for (int64_t i = 0; i < set.NumQueries(text); ++i) {
      const int64_t query = set.offsets[static_cast<size_t>(text)] + i;
      queries.push_back(query);
      const auto numbers =
          set.numbers.begin() + static_cast<std::ptrdiff_t>(query * kAspectNumbers);
      selected.numbers.insert(selected.numbers.end(), numbers, numbers + kAspectNumbers);
      if (set.AsksForSpans()) {
        selected.spans.queries.push_back(set.spans.queries[static_cast<size_t>(query)]);
      }
    }
    selected.offsets.push_back(static_cast<int64_t>(queries.size()));
    selected.most_queries = std::max(selected.most_queries, set.NumQueries(text));
  }
  selected.queries = SelectRows(set.queries, queries);
  return selected;
}

LengthHistogram QueryCounts(const QuerySet& set) {
  LengthHistogram counts;
  for (int64_t text = 0; text < set.num_texts(); ++text) ++counts[set.NumQueries(text)];
  return counts;
}

absl::StatusOr<QuerySets> LoadQuerySets(const std::string& train_path,
                                        const std::string& validation_path,
                                        const QueryOptions& options, RowEncoder encode) {
  HPO_ASSIGN_OR_RETURN(AspectFile train, ReadAspectFile(train_path));
  HPO_ASSIGN_OR_RETURN(AspectFile validation, ReadAspectFile(validation_path));
  QuerySets sets{.labels = options.labels.empty() ? ClassesOf(train) : options.labels};
  HPO_ASSIGN_OR_RETURN(const ClassIndex classes, IndexClasses(sets.labels));
  const int64_t last_line = train.rows.back().line;
  const int64_t most = options.most_aspects;
  if (most > 0) {
    std::erase_if(train.rows, [most](const AspectRow& row) {
      return static_cast<int64_t>(row.aspects.size()) > most;
    });
  }
  if (train.rows.empty()) {
    return DataError(train_path, last_line,
                     absl::StrCat("expected texts of at most ", most,
                                  " aspects (aspects.max), got none up to this last one"));
  }
  HPO_ASSIGN_OR_RETURN(sets.train, Encode(train, classes, options, encode));
  HPO_ASSIGN_OR_RETURN(sets.validation, Encode(validation, classes, options, encode));
  if (options.span_tokenizer != nullptr) sets.validation_texts = std::move(validation.rows);
  sets.labels.insert(sets.labels.end(), {"valence", "arousal"});
  return sets;
}

}  // namespace hpo::text
