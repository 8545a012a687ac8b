// A folder for one test's database files, removed with everything in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/base/status.h"

namespace hpo {

class TemporaryDatabase {
 public:
  TemporaryDatabase() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hpo_db_XXXXXX").string();
    HPO_CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  TemporaryDatabase(const TemporaryDatabase&) = delete;
  TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;
  ~TemporaryDatabase() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path() const { return (folder_ / "hpo.db").string(); }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace hpo
