#include "worker/text/data/span_queries.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/text/tokenizers/pipeline/phrase_tokens.h"

namespace hpo::text {
namespace {

using Asks = TextQuestion::Asks;

// The phrases of one text, each looked for once.
class PlacesInText {
 public:
  PlacesInText(const std::string& text, const Tokenizer& tokenizer)
      : text_(text), tokens_(text, tokenizer) {}

  const std::vector<TokenRange>& Of(const std::string& phrase) {
    const auto [entry, is_new] = known_.try_emplace(phrase);
    if (is_new) {
      for (const ByteRange& bytes : FindPhrase(text_, phrase)) {
        entry->second.push_back(tokens_.TokensOf(bytes));
      }
    }
    return entry->second;
  }

 private:
  const std::string& text_;
  const TokenizedText tokens_;
  std::map<std::string, std::vector<TokenRange>> known_;
};

SpanQuery PlaceAnswers(const TextQuestion& question, const TokenRange& text, PlacesInText& places) {
  SpanQuery query{.asks = question.asks, .text = text};
  int32_t number = 0;
  for (const std::string& phrase : question.phrases) {
    const std::vector<TokenRange>& found = places.Of(phrase);
    for (const TokenRange& tokens : found) {
      query.answers.push_back(
          {.tokens = {.begin = text.begin + tokens.begin, .end = text.begin + tokens.end},
           .phrase = number});
    }
    if (!found.empty()) ++number;
  }
  return query;
}

// Which of the two kinds of phrases occur in any text.
struct Occurrence {
  bool aspects = false;
  bool opinions = false;
};

void CountPhrases(const AspectRow& row, PlacesInText& places, Occurrence& occur,
                  SpanQueries& spans) {
  const auto count = [&](const std::string& phrase, bool& occurs) {
    if (phrase.empty()) return;
    ++spans.phrases;
    if (places.Of(phrase).empty()) {
      ++spans.unplaced;
    } else {
      occurs = true;
    }
  };
  for (const Aspect& aspect : row.aspects) {
    count(aspect.name, occur.aspects);
    count(aspect.opinion, occur.opinions);
  }
}

}  // namespace

absl::StatusOr<SpanQueries> FindSpans(const AspectFile& file, const Tokenizer& tokenizer,
                                      int64_t max_length) {
  SpanQueries spans;
  Occurrence occur;
  for (const AspectRow& row : file.rows) {
    PlacesInText places(row.text, tokenizer);
    for (const TextQuestion& question : QuestionsOf(row, /*with_spans=*/true)) {
      if (question.asks == Asks::kClass) {
        spans.queries.push_back({});
        continue;
      }
      const TokenRange text = tokenizer.Encode(question.words, row.text, max_length).pair;
      spans.queries.push_back(PlaceAnswers(question, text, places));
    }
    CountPhrases(row, places, occur, spans);
  }
  if (occur.aspects && occur.opinions) return spans;
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, ": ", occur.aspects ? "Opinion" : "Aspect",
                   ": expected at least one that occurs in its Text, letter for letter, got none "
                   "(multi-query-spans learns where they are)"));
}

}  // namespace hpo::text
