// The vocabularies and vectors of tests/golden/tokenizers.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/test_paths.h"
#include "worker/text/tokenizers/make_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

inline std::string GoldenTokenizersPath(const std::string& name) {
  return SourcePath("tests/golden/tokenizers/" + name);
}

inline std::unique_ptr<Tokenizer> GoldenTokenizer(const std::string& name) {
  auto tokenizer = MakeTokenizerOfFolder(GoldenTokenizersPath(name));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

inline std::vector<nlohmann::json> GoldenVectors(const std::string& name) {
  std::ifstream file(GoldenTokenizersPath(name));
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

// A text of `times` units is in the file as the number and the digest of its ids.
inline void ExpectLongVector(const Tokenizer& tokenizer, const nlohmann::json& row) {
  std::string text;
  for (int64_t i = 0; i < row.at("times"); ++i) text += row.at("unit").get<std::string>();
  const std::vector<int32_t> ids = tokenizer.Encode(text, std::nullopt, kNoTruncation).ids;
  EXPECT_EQ(ids.size(), row.at("num_ids").get<size_t>());
  EXPECT_EQ(Sha256Hex(absl::StrJoin(ids, ",")), row.at("sha256").get<std::string>());
}

inline void ExpectVector(const Tokenizer& tokenizer, const nlohmann::json& row) {
  if (row.contains("times")) return ExpectLongVector(tokenizer, row);
  const std::string text = row.at("text");
  const std::string pair = row.value("pair", "");
  std::optional<absl::string_view> pair_view;
  if (row.contains("pair")) pair_view = pair;
  const Encoding encoding =
      tokenizer.Encode(text, pair_view, row.value("max_length", kNoTruncation));
  EXPECT_EQ(encoding.ids, row.at("ids").get<std::vector<int32_t>>());
  if (!row.contains("type_ids")) return;
  EXPECT_EQ(encoding.type_ids, row.at("type_ids").get<std::vector<int32_t>>());
}

// Every row of a file against the tokenizer that it names; returns how many there were.
inline size_t ExpectVectors(const std::string& file) {
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers;
  const std::vector<nlohmann::json> rows = GoldenVectors(file);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump().substr(0, 400));
    std::unique_ptr<Tokenizer>& tokenizer = tokenizers[row.at("tokenizer")];
    if (tokenizer == nullptr) tokenizer = GoldenTokenizer(row.at("tokenizer"));
    if (tokenizer == nullptr) return 0;
    ExpectVector(*tokenizer, row);
  }
  return rows.size();
}

}  // namespace hpo::text
