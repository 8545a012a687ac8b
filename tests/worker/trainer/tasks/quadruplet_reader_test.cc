// The rounds against a model that answers by a script: what is asked, and what comes of it.
#include "worker/trainer/tasks/quadruplet_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kPositions = 64;
constexpr float kSure = 6.0f;  // logits; P is 0.995 of a span

// Lower-cased, without accents: what is found has both again.
const std::vector<std::string>& ReaderVocabulary() {
  static const auto* const tokens = new std::vector<std::string>(
      absl::StrSplit("[PAD] [UNK] [CLS] [SEP] which aspects opinions of are ? null wine cafe place "
                     "tres bon good not so cheap , the was and 服 务 好 bar ##man :-)",
                     ' '));
  return *tokens;
}

const text::Tokenizer& Words() {
  static const auto* const tokenizer = new std::unique_ptr<text::PipelineTokenizer>(
      text::MakeBertTokenizer({.tokens = ReaderVocabulary(), .digest = "words"}, {}));
  return **tokenizer;
}

std::string Spelled(std::span<const int64_t> ids) {
  std::string words;
  for (const int64_t id : ids) {
    absl::StrAppend(&words, words.empty() ? "" : " ", ReaderVocabulary()[static_cast<size_t>(id)]);
  }
  return words;
}

// Phrases of tokens by the question's.
using Script = std::map<std::string, std::vector<std::string>>;

// Says the phrases of its script wherever the text's tokens spell them, and classes by the number
// of tokens in their question.
class ScriptedModel {
 public:
  explicit ScriptedModel(Script script) : script_(std::move(script)) {}

  QueryOutputs Answer(const text::TokenBatch& batch) {
    QueryOutputs outputs{.length = batch.length};
    outputs.spans.assign(static_cast<size_t>(2 * batch.rows * batch.length), -kSure);
    for (int64_t row = 0; row < batch.rows; ++row) AnswerRow(batch, row, outputs);
    return outputs;
  }

  QueryOutputs AnswerLater(const text::TokenBatch& batch) {
    shapes_.push_back({batch.rows, batch.length});
    const QueryOutputs outputs = Answer(batch);
    later_.insert(later_.end(), asked_.end() - batch.rows, asked_.end());
    return outputs;
  }

  // Questions beyond those of the file, and the shapes they ran in.
  const std::vector<std::string>& later() const { return later_; }
  const std::vector<std::pair<int64_t, int64_t>>& shapes() const { return shapes_; }

 private:
  void AnswerRow(const text::TokenBatch& batch, int64_t row, QueryOutputs& outputs) {
    const auto first = static_cast<size_t>(row * batch.length);
    const auto ids = std::span(batch.ids).subspan(first, static_cast<size_t>(batch.length));
    constexpr int64_t kSeparator = 3;
    const auto question_end = std::find(ids.begin(), ids.end(), kSeparator) - ids.begin();
    const auto text_end = std::find(ids.begin() + question_end + 1, ids.end(), kSeparator);
    const auto begin = static_cast<size_t>(question_end) + 1;
    const auto end = static_cast<size_t>(text_end - ids.begin());
    asked_.push_back(Spelled(ids.subspan(1, begin - 2)));
    for (const std::string& phrase : script_[asked_.back()]) {
      const size_t length = static_cast<size_t>(std::count(phrase.begin(), phrase.end(), ' ')) + 1;
      for (size_t at = begin; at + length <= end; ++at) {
        if (Spelled(ids.subspan(at, length)) != phrase) continue;
        outputs.spans[2 * (first + at)] = kSure;
        outputs.spans[2 * (first + at + length - 1) + 1] = kSure;
      }
    }
    const auto tokens = static_cast<int64_t>(begin - 2);
    outputs.classes.push_back(tokens % 2);
    outputs.numbers.insert(outputs.numbers.end(), {static_cast<float>(tokens), 2.0f});
  }

  Script script_;
  std::vector<std::string> asked_;
  std::vector<std::string> later_;
  std::vector<std::pair<int64_t, int64_t>> shapes_;
};

class QuadrupletReaderTest : public testing::Test {
 protected:
  void Load(const std::vector<std::string>& lines, int64_t max_length = kPositions) {
    std::string file;
    for (const std::string& line : lines) absl::StrAppend(&file, line, "\n");
    const std::string path = folder_.Write("aspects.jsonl", file);
    auto sets = text::LoadQuerySets(
        path, path, {.span_tokenizer = &Words(), .max_length = max_length},
        [&](const text::Dataset& rows) { return text::EncodeDataset(rows, Words(), max_length); });
    ASSERT_TRUE(sets.ok()) << sets.status();
    data_.labels = {"EVEN", "ODD", "valence", "arousal"};
    data_.validation_texts = sets->validation_texts;
    data_.validation_queries = std::move(sets->validation);
    data_.max_length = max_length;
  }

  // Line by line "aspect|opinion|category".
  std::vector<std::vector<std::string>> Read(ScriptedModel& model,
                                             const text::QueryLayout& layout = {}) {
    QuadrupletReader reader(data_, Words(), kPositions);
    const text::QuerySet& set = *data_.validation_queries;
    ran_.clear();
    for (const text::BatchRows& texts :
         text::EvaluationBatches(text::TextsOf(set), /*batch_size=*/2)) {
      for (const text::BatchRows& piece : text::QueryPieces(set, layout, texts)) {
        const text::TokenBatch batch = text::PadQueries(set, piece, kPositions);
        ran_.push_back({batch.rows, batch.length});
        reader.Hear(piece, model.Answer(batch));
      }
    }
    reader.AskOn([&](const text::TokenBatch& batch) { return model.AnswerLater(batch); });
    std::vector<std::vector<std::string>> said;
    for (const auto& [text, quadruplets] : reader.Quadruplets()) {
      EXPECT_EQ(text, static_cast<int64_t>(said.size()));
      said.emplace_back();
      for (const text::Aspect& found : quadruplets) {
        said.back().push_back(absl::StrCat(found.name, "|", found.opinion, "|", found.category));
      }
    }
    return said;
  }

  bool Ran(int64_t rows, int64_t length) const {
    return std::any_of(ran_.begin(), ran_.end(), [&](const auto& shape) {
      return shape.first >= rows && shape.second >= length;
    });
  }

  TinyTrial folder_;
  TextData data_;
  std::vector<std::pair<int64_t, int64_t>> ran_;
};

std::string Line(const std::string& text, const std::string& aspect, const std::string& opinion) {
  return absl::StrCat(R"({"Text":")", text, R"(","Quadruplet":[{"Aspect":")", aspect,
                      R"(","Category":"EVEN","Opinion":")", opinion, R"(","VA":"5#5"}]})");
}

TEST_F(QuadrupletReaderTest, OfAModelThatFindsWhatTheFileSaysNothingMoreIsAsked) {
  Load({Line("the wine was good", "wine", "good")});
  ScriptedModel model({{"which aspects ?", {"wine"}},
                       {"which opinions ?", {"good"}},
                       {"which opinions of wine ?", {"good"}},
                       {"which aspects are good ?", {"wine"}}});
  // "wine , good" has three tokens.
  EXPECT_THAT(Read(model), ElementsAre(ElementsAre("wine|good|ODD")));
  EXPECT_THAT(model.later(), IsEmpty());
}

TEST_F(QuadrupletReaderTest, WhatElseItFindsIsAskedFor) {
  Load({Line("the wine was good , place not so cheap", "wine", "good")});
  ScriptedModel model({{"which aspects ?", {"place"}},
                       {"which opinions ?", {"not so cheap"}},
                       {"which opinions of place ?", {"not so cheap"}},
                       {"which aspects are not so cheap ?", {"place"}}});
  EXPECT_THAT(Read(model), ElementsAre(ElementsAre("place|not so cheap|ODD")));
  EXPECT_THAT(model.later(), testing::UnorderedElementsAre("which opinions of place ?",
                                                           "which aspects are not so cheap ?",
                                                           "place , not so cheap"));
}

// Capitals, accents, blanks of any number, and signs of several tokens or none.
TEST_F(QuadrupletReaderTest, WhatIsFoundIsTheTextsOwnBytes) {
  Load({Line("Le  CAFÉ was\\tTrès   Bon , 服务好!", "CAFÉ", "Très   Bon"),
        Line("the Barman :-) 😀 wine was Good", "Barman", "Good")});
  ScriptedModel model({{"which aspects ?", {"cafe", "bar ##man", "服 务"}},
                       {"which opinions ?", {"tres bon", "good", "好"}},
                       {"which opinions of cafe ?", {"tres bon"}},
                       {"which opinions of bar ##man ?", {"good"}},
                       {"which opinions of 服 务 ?", {"好"}},
                       {"which aspects are tres bon ?", {"cafe"}},
                       {"which aspects are good ?", {"bar ##man"}},
                       {"which aspects are 好 ?", {"服 务"}}});
  const auto said = Read(model);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], testing::UnorderedElementsAre("CAFÉ|Très   Bon|EVEN", "服务|好|EVEN"));
  EXPECT_THAT(said[1], ElementsAre("Barman|Good|EVEN"));
}

// Of seven tokens of the text five are left beside a question of three, four beside one of five,
// which loses one too.
TEST_F(QuadrupletReaderTest, WhatIsCutOffIsNotFound) {
  Load({Line("Le CAFÉ was Bon , wine Good", "CAFÉ", "Bon")}, /*max_length=*/11);
  ScriptedModel model({{"which aspects ?", {"cafe", "wine"}},
                       {"which opinions ?", {"bon", "good"}},
                       {"which opinions of cafe", {"bon"}},
                       {"which aspects are bon", {"cafe"}}});
  EXPECT_THAT(Read(model), ElementsAre(ElementsAre("CAFÉ|Bon|ODD")));
  EXPECT_THAT(model.later(), IsEmpty());
}

TEST_F(QuadrupletReaderTest, EqualPhrasesAreAskedForOnce) {
  Load({Line("wine good , place good", "wine", "good")});
  ScriptedModel model({{"which aspects ?", {"wine", "place"}},
                       {"which opinions ?", {"good"}},
                       {"which opinions of wine ?", {"good"}},
                       {"which opinions of place ?", {"good"}},
                       {"which aspects are good ?", {"wine", "place"}}});
  EXPECT_THAT(Read(model), ElementsAre(ElementsAre("place|good|ODD", "wine|good|ODD")));
  EXPECT_THAT(model.later(),
              testing::UnorderedElementsAre("which opinions of place ?", "place , good"));
}

TEST_F(QuadrupletReaderTest, WhatIsNotSaidIsAskedAsTheFileAsksIt) {
  Load({Line("the wine was good", "wine", "NULL"), Line("the place was good", "place", "good"),
        Line("so cheap", "NULL", "cheap")});
  ScriptedModel model({{"which aspects ?", {"wine"}}, {"which opinions ?", {"cheap"}}});
  EXPECT_THAT(Read(model),
              ElementsAre(ElementsAre("wine||ODD"), IsEmpty(), ElementsAre("|cheap|ODD")));
  EXPECT_THAT(model.later(), IsEmpty());
}

// Whatever it says, each piece is covered by one of the file's own; and the layout decides nothing.
TEST_F(QuadrupletReaderTest, NoPieceIsLargerThanOneThatRan) {
  const std::string longest = "the wine was good , and the place was good , and so so cheap wine";
  Load({Line("the wine was good", "wine", "good"), Line(longest, "place", "cheap"),
        Line("good wine so cheap place", "wine", "good"), Line("wine good", "wine", "good")});
  const std::vector<std::string> all = {"the", "wine", "was",   "good",    "place",
                                        "and", "so",   "cheap", "so cheap"};
  Script script = {{"which aspects ?", all}, {"which opinions ?", all}};
  for (const std::string& phrase : all) {
    script[absl::StrCat("which opinions of ", phrase, " ?")] = all;
    script[absl::StrCat("which aspects are ", phrase, " ?")] = {"wine", "cheap"};
  }
  std::vector<std::vector<std::string>> first;
  for (const text::QueryPadding padding :
       {text::QueryPadding::kNone, text::QueryPadding::kCorpus}) {
    for (const int64_t at_once : {0, 1, 3}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(padding), " ", at_once));
      ScriptedModel model(script);
      const auto said = Read(model, {.padding = padding, .at_once = at_once});
      EXPECT_GT(model.later().size(), 100u);
      for (const auto& [rows, length] : model.shapes()) {
        EXPECT_TRUE(Ran(rows, length)) << rows << " rows of " << length;
      }
      if (first.empty()) first = said;
      EXPECT_EQ(said, first);
      EXPECT_GT(said[1].size(), 20u);
    }
  }
}

TEST_F(QuadrupletReaderTest, AQuestionThatIsLongerThanAnyOfTheFileIsCutOff) {
  const std::string phrase =
      "the wine was good , and the place was good , and the bar was so so cheap , and";
  Load({Line(phrase + " the wine was not good", "wine", "good")});
  // 4 tokens and 20 of the phrase, 25 of the text, 3 around them; of the file's own at most 33.
  ScriptedModel model({{"which aspects ?", {phrase}}});
  EXPECT_THAT(Read(model), ElementsAre(ElementsAre(HasSubstr(phrase + "||"))));
  ASSERT_FALSE(model.shapes().empty());
  for (const auto& [rows, length] : model.shapes()) EXPECT_TRUE(Ran(rows, length)) << length;
  EXPECT_EQ(model.shapes().front().second, 48);
}

}  // namespace
}  // namespace hpo::trainer
