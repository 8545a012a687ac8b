#include "worker/text/tokenizers/families/sentencepiece_model.h"

#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/text/golden_tokenizers.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using PieceType = SentencePieceModel::PieceType;

// Messages in Protobuf's wire format. Lengths and values below 128 only.
std::string Varint(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}
// Field numbers of 16 and more take two bytes.
std::string WideVarint(int number, int value) {
  return {static_cast<char>((number << 3 & 0x7F) | 0x80), static_cast<char>(number >> 4),
          static_cast<char>(value)};
}
std::string Bytes(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Float(int number, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  std::string bytes(1, static_cast<char>(number << 3 | 5));
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  return bytes;
}
std::string Piece(const std::string& text, float score, int type) {
  return Bytes(1, Bytes(1, text) + Float(2, score) + Varint(3, type));
}

const std::string& SmallPieces() {
  static const auto* const model = new std::string(Piece("<unk>", 0, 2) + Piece("a", -1.5F, 1));
  return *model;
}

TEST(SentencePieceModel, ReadsPiecesAndSettings) {
  const std::string content = SmallPieces() + Piece("<s>", 0, 3) + Bytes(2, Varint(3, 2)) +
                              Bytes(3, Varint(3, 0) + Varint(4, 0) + Bytes(2, "map")) +
                              Bytes(4, "self test") + Bytes(5, "denormalizer");
  const auto model = ParseSentencePieceModel(content, "spm.model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->pieces, ElementsAre(SentencePieceModel::Piece{"<unk>", 0, PieceType::kUnknown},
                                         SentencePieceModel::Piece{"a", -1.5F, PieceType::kNormal},
                                         SentencePieceModel::Piece{"<s>", 0, PieceType::kControl}));
  EXPECT_EQ(model->unknown_id, 0);
  EXPECT_EQ(model->IdOf("<s>"), 2);
  EXPECT_EQ(model->IdOf("b"), -1);
  EXPECT_EQ(model->algorithm, SentencePieceModel::Algorithm::kBpe);
  EXPECT_EQ(model->precompiled_charsmap, "map");
  EXPECT_FALSE(model->add_dummy_prefix);
  EXPECT_FALSE(model->remove_extra_whitespaces);
  EXPECT_TRUE(model->escape_whitespaces);
}

TEST(SentencePieceModel, SettingsDefaultToTheFormatsDefaults) {
  const auto model = ParseSentencePieceModel(SmallPieces(), "spm.model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->algorithm, SentencePieceModel::Algorithm::kUnigram);
  EXPECT_TRUE(model->add_dummy_prefix);
  EXPECT_TRUE(model->remove_extra_whitespaces);
  EXPECT_FALSE(model->byte_fallback);
  EXPECT_FALSE(model->treat_whitespace_as_suffix);
}

TEST(SentencePieceModel, ReadsWhatSentencePieceWrote) {
  const std::string path = GoldenTokenizersPath("llama-like/tokenizer.model");
  const auto model = ParseSentencePieceModel(*ReadFile(path), path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->algorithm, SentencePieceModel::Algorithm::kBpe);
  EXPECT_TRUE(model->byte_fallback);
  EXPECT_FALSE(model->remove_extra_whitespaces);
  EXPECT_EQ(model->pieces[static_cast<size_t>(model->IdOf("<0x00>"))].type, PieceType::kByte);
  EXPECT_EQ(model->pieces[static_cast<size_t>(model->IdOf("<tool>"))].type,
            PieceType::kUserDefined);
}

TEST(SentencePieceModel, NamesWhatIsWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<std::string, const char*> cases[] = {
      {"", "expected one unknown piece, got 0"},
      {"{\"a\": 1}", "expected a wire type of Protobuf, got 3"},
      {std::string("\x0A\x7F") + "a", "byte 2: expected 127 bytes more, got 1"},
      {"\x08\xFF", "byte 2: expected a number's last byte"},
      {SmallPieces() + Piece("b", 0, 7), "expected a type of pieces from 1 to 6, got 7"},
      {SmallPieces() + Piece("", 0, 1), "piece 2: expected text, got none"},
      {SmallPieces() + Piece("\xFF", 0, 1), "piece 2: expected UTF-8, got other bytes"},
      {SmallPieces() + Piece("b", nan, 1), "piece 2: expected a finite score"},
      {SmallPieces() + Piece("a", 0, 1),
       "piece 2: expected distinct pieces, got 'a' again (first as"},
      {SmallPieces() + Piece("?", 0, 2), "expected one unknown piece, got 2"},
      {SmallPieces() + Bytes(2, WideVarint(35, 1)),
       "expected a piece <0x00> for byte_fallback, got none"},
  };
  for (const auto& [content, expected] : cases) {
    SCOPED_TRACE(expected);
    const auto model = ParseSentencePieceModel(content, "m/spm.model");
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(expected));
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("m/spm.model: "));
  }
}

TEST(SentencePieceModel, OtherAlgorithmsAreNotImplemented) {
  for (const auto& [content, expected] :
       {std::pair(SmallPieces() + Bytes(2, Varint(3, 4)), "expected unigram (1) or BPE (2), got 4"),
        std::pair(SmallPieces() + Bytes(2, Varint(3, 2)) + Piece("b", 0, 5),
                  "piece 2: expected no unused")}) {
    const auto model = ParseSentencePieceModel(content, "m/spm.model");
    EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(expected));
  }
}

// Every beginning of a real file is refused or read, and never more than it holds.
TEST(SentencePieceModel, TruncatedFilesBreakOffWithAnError) {
  const std::string path = GoldenTokenizersPath("xlmr-like/sentencepiece.bpe.model");
  const std::string content = *ReadFile(path);
  for (size_t size = 0; size < 400; ++size) {
    const std::string part = content.substr(0, size);
    const auto model = ParseSentencePieceModel(part, path);
    if (model.ok()) {
      EXPECT_LE(model->pieces.size(), size / 7);
    }
  }
}

}  // namespace
}  // namespace hpo::text
