#include "worker/text/tokenizers/pipeline/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/character_class.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

std::vector<AddedToken> LastOfEach(std::vector<AddedToken> tokens) {
  absl::flat_hash_map<std::string, size_t> place;
  std::vector<AddedToken> distinct;
  for (AddedToken& token : tokens) {
    const auto [found, inserted] = place.emplace(token.content, distinct.size());
    if (inserted) {
      distinct.push_back(std::move(token));
    } else {
      distinct[found->second] = std::move(token);
    }
  }
  return distinct;
}

std::vector<std::string> ContentsOf(std::span<const AddedToken> tokens) {
  std::vector<std::string> contents;
  for (const AddedToken& token : tokens) contents.push_back(token.content);
  return contents;
}

bool StandsAlone(absl::string_view text, size_t begin, size_t end) {
  const bool after_word =
      begin > 0 && IsWordCharacter(FirstCharacter(text.substr(CharacterBegin(text, begin - 1))));
  return !after_word && (end == text.size() || !IsWordCharacter(FirstCharacter(text.substr(end))));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens)
    : tokens_(LastOfEach(std::move(tokens))), trie_(ContentsOf(tokens_)), begins_token_{} {
  for (const AddedToken& token : tokens_) {
    begins_token_[static_cast<unsigned char>(token.content[0])] = true;
  }
}

const AddedToken* AddedTokenFinder::TokenAt(absl::string_view text, size_t begin) const {
  if (!begins_token_[static_cast<unsigned char>(text[begin])]) return nullptr;
  const VocabTrie::Match match = trie_.LongestMatch(VocabTrie::kRoot, text.substr(begin));
  return match.id < 0 ? nullptr : &tokens_[static_cast<size_t>(match.id)];
}

void AddedTokenFinder::Cut(absl::string_view text, bool at_start,
                           absl::FunctionRef<void(absl::string_view, bool)> on_text,
                           absl::FunctionRef<void(int32_t)> on_token) const {
  size_t done = 0;  // text before it has been given away
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    const AddedToken* const token = TokenAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word && !StandsAlone(text, begin, end)) continue;
    while (token->lstrip && begin > done &&
           ClassOfFirst(text.substr(CharacterBegin(text, begin - 1))) == CharacterClass::kSpace) {
      begin = CharacterBegin(text, begin - 1);
    }
    while (token->rstrip && end < text.size() &&
           ClassOfFirst(text.substr(end)) == CharacterClass::kSpace) {
      end += CharacterSize(text.substr(end));
    }
    if (done < begin) on_text(text.substr(done, begin - done), at_start && done == 0);
    on_token(token->id);
    done = end;
    at = std::max(at, done);
  }
  if (done < text.size()) on_text(text.substr(done), at_start && done == 0);
}

}  // namespace hpo::text
