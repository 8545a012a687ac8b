#include "common/device/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace hpo {
namespace {

namespace fs = std::filesystem;

// Version 1 writes its largest page-aligned number where there is no limit.
constexpr int64_t kVersion1Unlimited = int64_t{1} << 62;

absl::StatusOr<std::string> ReadText(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in.good() && text.str().empty()) {
    return absl::UnavailableError(absl::StrCat("cannot read ", file.string()));
  }
  return text.str();
}

// The number after `key` on its own line, as in "MemTotal:  32 kB" or "oom_kill 3".
std::optional<int64_t> FindNumber(absl::string_view text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return std::nullopt;
}

absl::StatusOr<Bytes> FindKilobytes(const fs::path& file, absl::string_view text,
                                    absl::string_view key) {
  const std::optional<int64_t> number = FindNumber(text, key);
  if (!number.has_value()) {
    return absl::UnavailableError(absl::StrCat(file.string(), ": expected a line ", key));
  }
  return KiB(*number);
}

// The files of one version of the interface.
struct CgroupFiles {
  const char* limit;
  const char* used;
  const char* stat_cache;  // key in memory.stat of page cache that can be dropped
  const char* events;      // file with the line oom_kill
};
constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file",
                                   "memory.events"};
constexpr CgroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file", "memory.oom_control"};

// Where a process's memory group is mounted.
struct CgroupPlace {
  fs::path mount;
  fs::path group;  // mount or below it
  CgroupFiles files;
};

// The group that is mounted at `folder`: "/", or in a container without its own group namespace one
// below. From lines "id parent device GROUP FOLDER ...".
std::string MountedGroup(const fs::path& root, const std::string& folder) {
  const std::string mounts = ReadText(root / "proc/self/mountinfo").value_or("");
  std::string group = "/";
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    if (fields.size() > 4 && fields[4] == folder) group = std::string(fields[3]);
  }
  return group;
}

// nullopt: the group is not mounted here. What is mounted above it says nothing of it.
std::optional<CgroupPlace> MakePlace(const fs::path& root, const std::string& folder,
                                     absl::string_view path, const CgroupFiles& files) {
  const std::string mounted = MountedGroup(root, folder);
  const fs::path below = fs::path(std::string(path)).lexically_relative(mounted);
  const fs::path mount = root / folder.substr(1);
  fs::path group = below == "." ? mount : mount / below;
  if (below.empty() || *below.begin() == ".." || !fs::exists(group / files.used)) {
    return std::nullopt;
  }
  return CgroupPlace{.mount = mount, .group = std::move(group), .files = files};
}

// Lines are "hierarchy:controllers:path"; version 2 has hierarchy 0 and no controllers.
std::optional<CgroupPlace> FindPlace(const fs::path& root, absl::string_view membership) {
  const std::string folder = "/sys/fs/cgroup";
  std::optional<CgroupPlace> unified;
  for (const absl::string_view line : absl::StrSplit(membership, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      return MakePlace(root, folder + "/memory", fields[2], kVersion1);
    }
    if (fields[0] == "0" && fields[1].empty()) {
      unified = MakePlace(root, folder, fields[2], kVersion2);
    }
  }
  return unified;
}

// nullopt: no limit at this level ("max", version 1's huge number, or the root, which has no file).
std::optional<Bytes> ReadLimit(const fs::path& group, const CgroupFiles& files) {
  const absl::StatusOr<std::string> text = ReadText(group / files.limit);
  int64_t limit = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &limit)) {
    return std::nullopt;
  }
  if (limit >= kVersion1Unlimited) return std::nullopt;
  return Bytes{limit};
}

absl::StatusOr<Bytes> ReadUsed(const fs::path& group, const CgroupFiles& files) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadText(group / files.used));
  int64_t used = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &used)) {
    return absl::UnavailableError(absl::StrCat((group / files.used).string(),
                                               ": expected a number of bytes, got '",
                                               absl::StripAsciiWhitespace(text), "'"));
  }
  const absl::StatusOr<std::string> stat = ReadText(group / "memory.stat");
  if (stat.ok()) used -= FindNumber(*stat, files.stat_cache).value_or(0);
  return Bytes{std::max<int64_t>(used, 0)};
}

int64_t ReadOomKills(const CgroupPlace& place) {
  const absl::StatusOr<std::string> text = ReadText(place.group / place.files.events);
  return text.ok() ? FindNumber(*text, "oom_kill").value_or(0) : 0;
}

std::string ProcessFolder(int64_t pid) { return pid == 0 ? "self" : absl::StrCat(pid); }

}  // namespace

HostMemoryReader::HostMemoryReader(fs::path root) : root_(std::move(root)) {}

absl::StatusOr<HostMemory> HostMemoryReader::ReadHost() const {
  const fs::path file = root_ / "proc/meminfo";
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  HostMemory result;
  HPO_ASSIGN_OR_RETURN(result.total, FindKilobytes(file, text, "MemTotal:"));
  HPO_ASSIGN_OR_RETURN(result.available, FindKilobytes(file, text, "MemAvailable:"));
  return result;
}

absl::StatusOr<CgroupMemory> HostMemoryReader::ReadCgroup(int64_t pid) const {
  const absl::StatusOr<std::string> membership =
      ReadText(root_ / "proc" / ProcessFolder(pid) / "cgroup");
  if (!membership.ok()) {
    return absl::NotFoundError(absl::StrCat("no process ", pid, ", or it has no control group"));
  }
  const std::optional<CgroupPlace> place = FindPlace(root_, *membership);
  if (!place.has_value()) {
    return absl::NotFoundError("no memory controller of its group is mounted in /sys/fs/cgroup");
  }
  CgroupMemory result;
  fs::path limited = place->group;
  for (fs::path group = place->group;; group = group.parent_path()) {
    const std::optional<Bytes> limit = ReadLimit(group, place->files);
    if (limit.has_value() && (!result.limit.has_value() || *limit < *result.limit)) {
      result.limit = limit;
      limited = group;
    }
    if (group == place->mount || !group.has_relative_path()) break;
  }
  HPO_ASSIGN_OR_RETURN(result.used, ReadUsed(limited, place->files));
  result.oom_kills = ReadOomKills(*place);
  return result;
}

absl::StatusOr<Bytes> HostMemoryReader::ReadResident(int64_t pid) const {
  const absl::StatusOr<std::string> text = ReadText(root_ / "proc" / ProcessFolder(pid) / "status");
  const std::optional<int64_t> resident =
      text.ok() ? FindNumber(*text, "VmRSS:") : std::optional<int64_t>();
  if (!resident.has_value()) {
    return absl::NotFoundError(absl::StrCat("no process ", pid, ", or it has ended"));
  }
  return KiB(*resident);
}

absl::StatusOr<Bytes> HostMemoryReader::ReadAllowed() const {
  HPO_ASSIGN_OR_RETURN(const HostMemory host, ReadHost());
  const absl::StatusOr<CgroupMemory> group = ReadCgroup();
  if (!group.ok() || !group->limit.has_value()) return host.available;
  return std::clamp(*group->limit - group->used, Bytes{}, host.available);
}

}  // namespace hpo
