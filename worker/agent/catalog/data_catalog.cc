// Tested by tests/worker/agent/catalog_test.cc.
#include "worker/agent/catalog/data_catalog.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "worker/agent/catalog/contained_path.h"
#include "worker/text/data/data_set_facts.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> Locate(const std::string& folder, const std::string& override_file,
                                   const std::string& name) {
  if (!override_file.empty()) return fs::absolute(override_file).string();
  if (name.empty()) return "";  // the study's trainer needs no file
  return FileBelow(folder, name, "--data");
}

// nullopt: nothing is cached, or nothing that can be read.
std::optional<DataSetFacts> ReadCache(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text);
  if (!json.ok()) return std::nullopt;
  absl::StatusOr<DataSetFacts> facts = DataSetFactsFromJson(*json);
  if (!facts.ok()) return std::nullopt;
  return *std::move(facts);
}

// A cache may fail to be written; it is then measured again next time.
void WriteCache(const std::string& path, const DataSetFacts& facts) {
  const absl::Status written = WriteFileAtomically(path, DumpJson(DataSetFactsToJson(facts)));
  if (!written.ok()) spdlog::debug("cache: {}", std::string(written.message()));
}

}  // namespace

absl::StatusOr<std::string> DataCatalog::TrainPath(const std::string& name) const {
  return Locate(options_.folder, options_.train_file, name);
}

absl::StatusOr<std::string> DataCatalog::ValidationPath(const std::string& name) const {
  return Locate(options_.folder, options_.validation_file, name);
}

std::string DataCatalog::CachePath(const std::string& digest, TaskKind task) const {
  const bool labelled = task == TaskKind::kTextClassification;
  return absl::StrCat(options_.cache_folder, "/", digest,
                      labelled ? "" : absl::StrCat("-", Name(task)), ".json");
}

absl::StatusOr<DataSetFacts> DataCatalog::Facts(const absl::StatusOr<std::string>& located,
                                                const std::string& name, TaskKind task,
                                                const Tokenizers& tokenizers) const {
  HPO_ASSIGN_OR_RETURN(const std::string path, located);
  HPO_ASSIGN_OR_RETURN(const std::string digest, Sha256File(path, options_.stopped));
  std::optional<DataSetFacts> known = ReadCache(CachePath(digest, task));
  std::vector<const text::Tokenizer*> missing;
  for (const auto& [tokenizer_digest, tokenizer] : tokenizers) {
    if (!known || !known->lengths.contains(tokenizer_digest)) {
      missing.push_back(tokenizer.get());
    }
  }
  if (!known || !missing.empty()) {
    std::vector<std::string> warnings;
    absl::StatusOr<DataSetFacts> measured =
        text::MeasureDataSet(path, name, missing, task, &warnings);
    for (const std::string& warning : warnings) spdlog::warn("{}", warning);
    if (!measured.ok() && !options_.require_text_rows) {
      return DataSetFacts{.name = name, .digest = digest};
    }
    HPO_RETURN_IF_ERROR(measured.status());
    if (known) {
      measured->lengths.merge(known->lengths);
    }
    known = *std::move(measured);
    WriteCache(CachePath(digest, task), *known);
  }
  known->name = name;
  return *std::move(known);
}

DataCatalog::Scan DataCatalog::Measure(const std::vector<StudyData>& studies,
                                       const Tokenizers& tokenizers) const {
  Scan scan;
  std::map<std::string, bool> found;  // by name
  const auto add = [&](const std::string& name, const absl::StatusOr<std::string>& path,
                       TaskKind task) {
    if (name.empty()) return true;
    if (const auto known = found.find(name); known != found.end()) return known->second;
    absl::StatusOr<DataSetFacts> facts = Facts(path, name, task, tokenizers);
    found[name] = facts.ok();
    if (facts.ok()) {
      scan.facts.push_back(*std::move(facts));
    } else {
      scan.left_out[name] = std::string(facts.status().message());
      // What is wrong with the name itself begins with it.
      scan.failures.push_back(
          Annotate(facts.status(), path.ok() ? absl::StrCat("data file ", name) : "data file"));
    }
    return facts.ok();
  };
  for (const StudyData& study : studies) {
    if (options_.stopped && options_.stopped()) break;
    // Another trainer's task is no concern of ours: its files are tried as labelled texts.
    const TaskKind task = ParseTaskKind(study.task).value_or(TaskKind::kTextClassification);
    const bool has_train = add(study.train, TrainPath(study.train), task);
    const bool has_validation = add(study.validation, ValidationPath(study.validation), task);
    if (has_train && has_validation) {
      scan.complete_studies.push_back(study.study);
    }
  }
  return scan;
}

}  // namespace hpo::agent
