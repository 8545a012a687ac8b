#include "worker/command/ranks/rank_reader.h"

#include "absl/strings/match.h"
#include "re2/re2.h"

namespace hpo::command {
namespace {

// Roles that launchers give; another word may be a program's own.
const RE2& Beginning() {
  static const auto* const pattern =
      new RE2("^\\s*\\[(?:rank|default|trainer|worker)(\\d{1,6})\\]:?\\s?");
  return *pattern;
}

const RE2& ListedRank() {
  static const auto* const pattern = new RE2("^\\s*rank\\s*: (\\d{1,6}) \\(local_rank: \\d+\\)");
  return *pattern;
}

const RE2& ListedExit() {
  static const auto* const pattern = new RE2("^\\s*exitcode\\s*: (-?\\d{1,6}) \\(pid: ");
  return *pattern;
}

constexpr char kRootCause[] = "Root Cause (first observed failure)";
constexpr int kKilled = -9;

re2::StringPiece PieceOf(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::optional<int64_t> RankOf(absl::string_view line) {
  // Within each other: "[default1]:[rank1]: ...". The last is the program's own.
  std::optional<int64_t> rank;
  re2::StringPiece rest = PieceOf(line);
  for (int64_t number = 0; RE2::Consume(&rest, Beginning(), &number);) rank = number;
  return rank;
}

absl::string_view WithoutRank(absl::string_view line) {
  re2::StringPiece rest = PieceOf(line);
  while (RE2::Consume(&rest, Beginning())) {
  }
  return {rest.data(), rest.size()};
}

void RankReader::Take(absl::string_view line) {
  if (absl::StrContains(line, kRootCause)) at_root_cause_ = true;
  int64_t rank = 0;
  if (RE2::PartialMatch(PieceOf(line), ListedRank(), &rank)) {
    listed_ = rank;
    if (at_root_cause_ && !root_cause_) root_cause_ = rank;
  }
  int exit_code = 0;
  if (at_root_cause_ && RE2::PartialMatch(PieceOf(line), ListedExit(), &exit_code)) {
    killed_ = exit_code == kKilled;
  }
}

void RankReader::NoteOom(absl::string_view line) {
  has_oom_ = true;
  oom_rank_ = RankOf(line);
  if (!oom_rank_) oom_rank_ = listed_;
}

void RankReader::ForgetOom() {
  has_oom_ = false;
  oom_rank_.reset();
}

std::optional<int64_t> RankReader::oom_rank() const {
  if (!has_oom_) return std::nullopt;
  return oom_rank_ ? oom_rank_ : root_cause_;
}

}  // namespace hpo::command
