// "did you mean ...?" for misspelt keys, names and options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo {

// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
// Source: optimal string alignment, Damerau 1964 restricted to non-overlapping edits.
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate nearest to `word`; the first of equals; one that begins with `word` (of three
// letters or more) before all others; nullopt where none is within a third of the
// word's length (at least one edit, and never the whole word).
std::optional<std::string> ClosestWord(absl::string_view word,
                                       const std::vector<std::string>& candidates);

// "; did you mean 'budget'?", or nothing where no candidate is close.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

// The candidate that `word` and a dash begin: the only one, else the one that "-uncased" makes of
// it, as "bert-large" means bert-large-uncased; nullopt: none, or which one cannot be told.
std::optional<std::string> NameContinued(absl::string_view word,
                                         const std::vector<std::string>& candidates);

}  // namespace hpo
