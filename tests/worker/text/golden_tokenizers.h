// The vocabularies and vectors of tests/golden/tokenizers.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "worker/text/wordpiece.h"

namespace hpo {

inline std::string GoldenTokenizersPath(const std::string& name) {
  return std::string(HPO_SOURCE_DIR) + "/tests/golden/tokenizers/" + name;
}

// "bert-base-uncased" or "bert-base-cased".
inline std::unique_ptr<Tokenizer> GoldenTokenizer(const std::string& name) {
  ModelShape shape;
  shape.family = "bert";
  shape.vocab_size = name == "bert-base-uncased" ? 30522 : 28996;
  auto tokenizer = MakeTokenizer(GoldenTokenizersPath(name), shape);
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

}  // namespace hpo
