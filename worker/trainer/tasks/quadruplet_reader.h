// Reads the quadruplets of texts out of a model that answers their questions. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/batching/later_queries.h"
#include "worker/text/data/quadruplets.h"
#include "worker/text/tokenizers/pipeline/phrase_tokens.h"
#include "worker/trainer/data/trial_data.h"

namespace hpo::trainer {

// What a model says of a piece of queries, row by row.
struct QueryOutputs {
  int64_t length = 0;            // tokens of every row
  std::vector<float> spans;      // logits, [rows, length, 2]: that a span begins, that one ends
  std::vector<int64_t> classes;  // [rows]: the most probable
  std::vector<float> numbers;    // [rows, 2]: valence and arousal

  // Of one row, as SpansIn takes them (worker/trainer/scores/span_scores.h).
  std::span<const float> SpansOf(size_t row) const;
};

// The rounds of worker/text/data/quadruplets.h. What the file's own queries ask is taken from their
// answers: of a model that finds every phrase nothing more is asked. Used once, from one thread.
class QuadrupletReader {
 public:
  // Of the texts of data.validation_queries, which ask for spans. Both outlive the reader.
  QuadrupletReader(const TextData& data, const text::Tokenizer& tokenizer, int64_t max_positions)
      : data_(data), tokenizer_(tokenizer), max_positions_(max_positions) {}

  // The model's outputs of a piece of the file's own queries (QueryPieces).
  void Hear(const text::BatchRows& piece, const QueryOutputs& outputs);

  // Asks what the answers leave open, of all texts whose queries were heard, in pieces of
  // PiecesWithin. `ask` runs one and keeps nothing of it.
  void AskOn(absl::FunctionRef<QueryOutputs(const text::TokenBatch&)> ask);

  // By the number of their text, those that were heard. After AskOn.
  std::map<int64_t, std::vector<text::Aspect>> Quadruplets() const;

 private:
  struct Text {
    std::vector<text::TextQuestion> own;  // what its queries ask, in order
    text::TokenizedText tokens;
    std::map<std::pair<int64_t, int64_t>, std::string> phrases;  // by their tokens
    text::AnsweredText answered;
  };

  Text& TextOf(int64_t number);
  // `row`: of the outputs, that of the question; `kept`: where in it the text's tokens are.
  void Add(const text::TextQuestion& question, const text::TokenRange& kept,
           const QueryOutputs& outputs, size_t row, Text& text) const;
  std::vector<text::FoundPhrase> PhrasesIn(std::span<const float> logits,
                                           const text::TokenRange& kept, Text& text) const;

  const TextData& data_;
  const text::Tokenizer& tokenizer_;
  const int64_t max_positions_;
  text::QueryRoom room_;
  std::map<int64_t, Text> texts_;  // by their number
};

}  // namespace hpo::trainer
