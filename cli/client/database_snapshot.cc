#include "cli/client/database_snapshot.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/client/local_service.h"
#include "cli/client/terminal.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

// The lines of the server's that are for whoever reads the file.
void PrintNotes(const std::string& log, std::ostream& err) {
  const std::string text = ReadFile(log).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "note: ")) err << "hpo: " << Printable(line) << "\n";
  }
}

}  // namespace

DatabaseSnapshot::DatabaseSnapshot(std::unique_ptr<TemporaryFolder> folder,
                                   std::unique_ptr<LocalService> service)
    : folder_(std::move(folder)), service_(std::move(service)) {}

DatabaseSnapshot::~DatabaseSnapshot() = default;

const std::string& DatabaseSnapshot::address() const { return service_->address(); }

absl::StatusOr<std::unique_ptr<DatabaseSnapshot>> DatabaseSnapshot::Open(const std::string& file,
                                                                         std::ostream& err) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(file, error);
  if (error) return FileError(error.value(), file);
  if (!is_file) {
    return absl::FailedPreconditionError(absl::StrCat("--db: expected a file, got ", file));
  }
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-reader-"));
  LocalServiceOptions options{.programs = ProgramFolder(),
                              .folder = folder->path(),
                              .snapshot_of = fs::absolute(file).string(),
                              .server_arguments = {"--log-level", "error", "--lease-ttl", "24h"}};
  absl::StatusOr<std::unique_ptr<LocalService>> service = LocalService::Start(options);
  if (!service.ok()) {
    std::string why(service.status().message());
    return absl::Status(service.status().code(),
                        std::string(absl::StripPrefix(why, "hpo-server: ")));
  }
  PrintNotes(folder->path() + "/server.log", err);
  return std::unique_ptr<DatabaseSnapshot>(
      new DatabaseSnapshot(std::move(folder), *std::move(service)));
}

}  // namespace hpo::cli
