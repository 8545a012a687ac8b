// A file of Optuna's in a folder of its own, removed with it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_file.h"

namespace hpo {

class OptunaFolder : public ::testing::Test {
 protected:
  OptunaFolder() : folder_(MakeFolder()), path_(folder_ / "study.db") {}
  ~OptunaFolder() override { std::filesystem::remove_all(folder_); }

  absl::Status Write(const StudySpec& study, const std::vector<TrialView>& trials) const {
    auto file = OptunaFile::Begin(path_, study);
    if (!file.ok()) return file.status();
    for (const TrialView& trial : trials) HPO_RETURN_IF_ERROR((*file)->Write(trial));
    return (*file)->Commit();
  }

  const std::filesystem::path folder_;
  std::string path_;  // of the file

 private:
  static std::filesystem::path MakeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "optunaXXXXXX").string();
    return mkdtemp(name.data());
  }
};

}  // namespace hpo
