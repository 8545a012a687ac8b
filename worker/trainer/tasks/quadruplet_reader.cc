#include "worker/trainer/tasks/quadruplet_reader.h"

#include <algorithm>

#include "common/models/query_answers.h"
#include "worker/trainer/scores/span_scores.h"

namespace hpo::trainer {
namespace {

using Asks = text::TextQuestion::Asks;

struct Asked {
  int64_t text = 0;  // its number
  text::TextQuestion question;
};

}  // namespace

std::span<const float> QueryOutputs::SpansOf(size_t row) const {
  const auto of_row = static_cast<size_t>(length * kSpanEnds);
  return std::span(spans).subspan(row * of_row, of_row);
}

QuadrupletReader::Text& QuadrupletReader::TextOf(int64_t number) {
  const auto found = texts_.find(number);
  if (found != texts_.end()) return found->second;
  const text::AspectRow& row = data_.validation_texts[static_cast<size_t>(number)];
  return texts_
      .emplace(number, Text{.own = text::QuestionsOf(row, /*with_spans=*/true),
                            .tokens = text::TokenizedText(row.text, tokenizer_),
                            .phrases = {},
                            .answered = {}})
      .first->second;
}

void QuadrupletReader::Hear(const text::BatchRows& piece, const QueryOutputs& outputs) {
  room_.Add(static_cast<int64_t>(piece.size()), outputs.length);
  const text::QuerySet& set = *data_.validation_queries;
  for (size_t row = 0; row < piece.size(); ++row) {
    const int64_t query = piece[row];
    if (query < 0) continue;
    const auto after = std::upper_bound(set.offsets.begin(), set.offsets.end(), query);
    Text& text = TextOf(after - set.offsets.begin() - 1);
    const text::TextQuestion& question = text.own[static_cast<size_t>(query - *(after - 1))];
    Add(question, set.spans.queries[static_cast<size_t>(query)].text, outputs, row, text);
  }
}

void QuadrupletReader::Add(const text::TextQuestion& question, const text::TokenRange& kept,
                           const QueryOutputs& outputs, size_t row, Text& text) const {
  text::QuestionAnswer answer;
  if (question.asks == Asks::kClass) {
    answer.category = data_.labels[static_cast<size_t>(outputs.classes[row])];
    answer.valence = outputs.numbers[row * kAspectNumbers];
    answer.arousal = outputs.numbers[row * kAspectNumbers + 1];
  } else {
    answer.phrases = PhrasesIn(outputs.SpansOf(row), kept, text);
  }
  text.answered.Add(question.asks, question.words, std::move(answer));
}

std::vector<text::FoundPhrase> QuadrupletReader::PhrasesIn(std::span<const float> logits,
                                                           const text::TokenRange& kept,
                                                           Text& text) const {
  std::vector<text::FoundPhrase> phrases;
  for (const text::TokenRange& span : SpansIn(logits, kept)) {
    const text::TokenRange tokens{.begin = span.begin - kept.begin, .end = span.end - kept.begin};
    const auto [entry, is_new] = text.phrases.try_emplace({tokens.begin, tokens.end});
    if (is_new) entry->second = text.tokens.PhraseOf(tokens);
    if (entry->second.empty()) continue;  // a blank
    phrases.push_back({.words = entry->second, .probability = SpanProbability(logits, span)});
  }
  return phrases;
}

void QuadrupletReader::AskOn(absl::FunctionRef<QueryOutputs(const text::TokenBatch&)> ask) {
  while (true) {
    std::vector<Asked> asked;
    std::vector<text::LaterQuestion> questions;
    for (const auto& [number, text] : texts_) {
      for (const text::TextQuestion& question : text.answered.OpenQuestions()) {
        questions.push_back({.words = question.words,
                             .text = data_.validation_texts[static_cast<size_t>(number)].text});
        asked.push_back({.text = number, .question = question});
      }
    }
    if (asked.empty()) return;
    const text::LaterQueries later =
        text::EncodeLater(questions, tokenizer_, std::min(data_.max_length, room_.most_tokens()),
                          data_.one_token_type);
    for (const text::BatchRows& piece : text::PiecesWithin(room_, later.queries, max_positions_)) {
      const QueryOutputs outputs = ask(text::PadBatch(later.queries, piece, max_positions_));
      for (size_t row = 0; row < piece.size(); ++row) {
        const auto query = static_cast<size_t>(piece[row]);
        Add(asked[query].question, later.texts[query], outputs, row, TextOf(asked[query].text));
      }
    }
  }
}

std::map<int64_t, std::vector<text::Aspect>> QuadrupletReader::Quadruplets() const {
  std::map<int64_t, std::vector<text::Aspect>> quadruplets;
  for (const auto& [number, text] : texts_) quadruplets[number] = text.answered.Quadruplets();
  return quadruplets;
}

}  // namespace hpo::trainer
