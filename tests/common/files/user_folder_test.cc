#include "common/files/user_folder.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr char kVariable[] = "HPO_USER_FOLDER_TEST";

// Gives a variable of the environment its value back.
class KeptVariable {
 public:
  explicit KeptVariable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name); value != nullptr) value_ = value;
  }
  ~KeptVariable() {
    if (value_.has_value()) {
      ::setenv(name_, value_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  KeptVariable(const KeptVariable&) = delete;
  KeptVariable& operator=(const KeptVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> value_;
};

TEST(UserFolder, IsNamedByItsVariableElseBelowHome) {
  const KeptVariable home("HOME");
  const KeptVariable own(kVariable);
  ::setenv("HOME", "/home/ada", 1);
  ::setenv(kVariable, "/fast/cache", 1);
  EXPECT_EQ(UserFolder(kVariable, ".cache"), "/fast/cache");
  ::setenv(kVariable, "", 1);
  EXPECT_EQ(UserFolder(kVariable, ".cache"), "/home/ada/.cache");
  ::unsetenv(kVariable);
  EXPECT_EQ(UserFolder(kVariable, ".cache"), "/home/ada/.cache");
}

TEST(UserFolder, IsEmptyWithoutAHome) {
  const KeptVariable home("HOME");
  const KeptVariable own(kVariable);
  ::unsetenv(kVariable);
  ::setenv("HOME", "", 1);
  EXPECT_EQ(UserFolder(kVariable, ".cache"), "");
  ::unsetenv("HOME");
  EXPECT_EQ(UserFolder(kVariable, ".cache"), "");
}

TEST(ProgramFolder, HoldsTheRunningProgram) {
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(ProgramFolder()) / "test_common"));
}

}  // namespace
}  // namespace hpo
