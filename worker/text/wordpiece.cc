#include "worker/text/wordpiece.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/read_file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/truncation.h"
#include "worker/text/utf8.h"

namespace hpo {
namespace {

constexpr size_t kMaxWordCharacters = 100;
constexpr absl::string_view kContinuationPrefix = "##";

// Pieces per byte of ordinary text are fewer than this.
constexpr size_t kBytesPerPiece = 4;

std::string DigestOf(const Vocabulary& vocabulary, const BertNormalization& normalization) {
  return Sha256Hex(absl::StrCat("wordpiece lowercase=", normalization.lowercase,
                                " strip_accents=", normalization.strip_accents,
                                " split_cjk=", normalization.split_cjk, " ", vocabulary.digest));
}

// Sets `value` from a boolean key; a missing key or null leaves it as it is.
absl::Status ReadFlag(const nlohmann::json& object, const char* key, const std::string& origin,
                      bool& value) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_boolean()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", key, ": expected true or false, got ", found->dump()));
  }
  value = found->get<bool>();
  return absl::OkStatus();
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(const Vocabulary& vocabulary,
                                       BertNormalization normalization)
    : vocab_size_(static_cast<int64_t>(vocabulary.tokens.size())),
      pad_id_(vocabulary.IdOf("[PAD]")),
      unknown_id_(vocabulary.IdOf("[UNK]")),
      cls_id_(vocabulary.IdOf("[CLS]")),
      sep_id_(vocabulary.IdOf("[SEP]")),
      digest_(DigestOf(vocabulary, normalization)),
      normalizer_(normalization),
      trie_(vocabulary.tokens),
      continuation_(trie_.Descend(kContinuationPrefix)) {
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const int32_t id = vocabulary.IdOf(text);
    if (id >= 0) special_tokens_.push_back({text, id});
  }
}

Encoding WordPieceTokenizer::Encode(absl::string_view text, std::optional<absl::string_view> pair,
                                    int64_t max_length) const {
  const bool has_pair = pair.has_value();
  HPO_CHECK(max_length >= NumSpecialTokens(has_pair));
  Encoding encoding;
  std::vector<int32_t>& ids = encoding.ids;
  ids.reserve(text.size() / kBytesPerPiece + 3);
  ids.push_back(cls_id_);
  AppendPieces(text, ids);
  const std::vector<int32_t> pair_ids = has_pair ? Pieces(*pair) : std::vector<int32_t>();
  const KeptTokens kept = TruncateLongestFirst(
      {static_cast<int64_t>(ids.size()) - 1, static_cast<int64_t>(pair_ids.size())},
      max_length - NumSpecialTokens(has_pair));
  ids.resize(static_cast<size_t>(kept.text) + 1);
  ids.push_back(sep_id_);
  encoding.type_ids.assign(ids.size(), 0);
  if (has_pair) {
    ids.insert(ids.end(), pair_ids.begin(), pair_ids.begin() + kept.pair);
    ids.push_back(sep_id_);
    encoding.type_ids.resize(ids.size(), 1);
  }
  return encoding;
}

std::vector<int32_t> WordPieceTokenizer::Pieces(absl::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / kBytesPerPiece + 1);
  AppendPieces(text, ids);
  return ids;
}

const WordPieceTokenizer::SpecialToken* WordPieceTokenizer::SpecialTokenAt(
    absl::string_view text) const {
  for (const SpecialToken& token : special_tokens_) {
    if (absl::StartsWith(text, token.text)) return &token;
  }
  return nullptr;
}

// Special tokens are looked for in the raw text, before any normalisation.
void WordPieceTokenizer::AppendPieces(absl::string_view text, std::vector<int32_t>& ids) const {
  const auto append_plain = [&](absl::string_view plain) {
    const std::string words = normalizer_.Words(plain);
    size_t begin = 0;
    for (size_t end = words.find(' '); end != std::string::npos; end = words.find(' ', begin)) {
      AppendWord(absl::string_view(words).substr(begin, end - begin), ids);
      begin = end + 1;
    }
  };
  size_t bracket = text.find('[');
  while (bracket != absl::string_view::npos) {
    const SpecialToken* special = SpecialTokenAt(text.substr(bracket));
    if (special == nullptr) {
      bracket = text.find('[', bracket + 1);
      continue;
    }
    append_plain(text.substr(0, bracket));
    ids.push_back(special->id);
    text.remove_prefix(bracket + special->text.size());
    bracket = text.find('[');
  }
  append_plain(text);
}

void WordPieceTokenizer::AppendWord(absl::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  if (word.size() > kMaxWordCharacters && CountCharacters(word) > kMaxWordCharacters) {
    ids.push_back(unknown_id_);
    return;
  }
  VocabTrie::Node start = VocabTrie::kRoot;
  while (!word.empty()) {
    const VocabTrie::Match match = trie_.LongestMatch(start, word);
    if (match.id < 0) {
      ids.resize(before);
      ids.push_back(unknown_id_);
      return;
    }
    ids.push_back(match.id);
    word.remove_prefix(match.length);
    start = continuation_;
  }
}

absl::StatusOr<BertNormalization> ParseTokenizerConfig(absl::string_view json,
                                                       const std::string& origin) {
  const nlohmann::json config =
      nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": expected a JSON object"));
  }
  BertNormalization normalization;
  HPO_RETURN_IF_ERROR(ReadFlag(config, "do_lower_case", origin, normalization.lowercase));
  normalization.strip_accents = normalization.lowercase;
  HPO_RETURN_IF_ERROR(ReadFlag(config, "strip_accents", origin, normalization.strip_accents));
  HPO_RETURN_IF_ERROR(ReadFlag(config, "tokenize_chinese_chars", origin, normalization.split_cjk));
  return normalization;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadWordPiece(const std::string& folder,
                                                         int64_t model_rows) {
  const std::string vocabulary_path = folder + "/vocab.txt";
  const std::string config_path = folder + "/tokenizer_config.json";
  HPO_ASSIGN_OR_RETURN(const std::string vocabulary_text, ReadFile(vocabulary_path));
  HPO_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                       ParseVocabulary(vocabulary_text, vocabulary_path, model_rows));
  BertNormalization normalization;
  const absl::StatusOr<std::string> config = ReadFile(config_path);
  if (config.ok()) {
    HPO_ASSIGN_OR_RETURN(normalization, ParseTokenizerConfig(*config, config_path));
  } else if (!absl::IsNotFound(config.status())) {
    return config.status();
  }
  return std::make_unique<WordPieceTokenizer>(vocabulary, normalization);
}

}  // namespace hpo
