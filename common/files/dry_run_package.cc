// Tested by tests/cli/client/dry_run_package_test.cc.
#include "common/files/dry_run_package.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/last_line.h"
#include "common/files/user_folder.h"

namespace hpo {
namespace {

constexpr char kPython[] = "python3";
// Where the package is, seen from the folder of the program: in the build folder, in an
// installation, and in the wheel of hpo.
constexpr const char* kPlaces[] = {"../python/hpo_dryrun", "../lib/hpo/python/hpo_dryrun",
                                   "../../hpo_dryrun"};

std::string FromPythonsPath(absl::string_view caller) {
  return absl::StrCat(R"(
import importlib.util, runpy, sys
if importlib.util.find_spec("hpo_dryrun") is None:
    sys.exit(")",
                      caller, R"(the Python package hpo_dryrun is missing; install its wheel, "
             "which scripts/wheel --dry-run builds")
runpy.run_module("hpo_dryrun", run_name="__main__", alter_sys=True)
)");
}

}  // namespace

std::vector<std::string> DryRunCommand(absl::string_view caller) {
  for (const char* const place : kPlaces) {
    std::error_code error;
    const std::filesystem::path package = std::filesystem::path(ProgramFolder()) / place;
    if (std::filesystem::exists(package / "__main__.py", error)) {
      return {kPython, package.lexically_normal().string()};
    }
  }
  return {kPython, "-c", FromPythonsPath(caller)};
}

std::string DryRunComplaint(absl::string_view output) {
  const std::string last = LastLine(output);
  absl::string_view text = absl::StripLeadingAsciiWhitespace(last);
  absl::ConsumePrefix(&text, "hpo memory dry-run: ");
  return std::string(text);
}

}  // namespace hpo
