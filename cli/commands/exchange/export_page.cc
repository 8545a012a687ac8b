// Tested by tests/integration/page/test_page_export.py.
#include "cli/commands/exchange/export_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/commands/exchange/page_file.h"
#include "cli/render/json.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr absl::string_view kPlaceOfData = "HPO-DATA";

// A study's name may have letters that a file's name cannot.
std::string FileName(const std::string& study) {
  std::string name = study;
  for (char& letter : name) {
    if (letter == '/' || static_cast<unsigned char>(letter) < ' ') letter = '_';
  }
  return absl::StrCat(name, ".html");
}

}  // namespace

absl::Status ExportPage(Session& session, const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const std::string data, session.client.RecordStudy(name));
  const absl::string_view page = PageFile();
  const size_t place = page.find(kPlaceOfData);
  const std::string file = path.empty() ? FileName(name) : path;
  const std::string content =
      absl::StrCat(page.substr(0, place), data, page.substr(place + kPlaceOfData.size()));
  HPO_RETURN_IF_ERROR(WriteFileDurably(file, content));
  const Bytes size{static_cast<int64_t>(content.size())};
  if (session.json) {
    PrintJson({{"study", name}, {"file", file}, {"bytes", size.count}}, session.out);
  } else {
    session.out << name << ": written to " << file << " (" << FormatBytes(size)
                << "); open it in a browser\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
