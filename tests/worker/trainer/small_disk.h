// A disk of a few KiB that is really full when it is full: a tmpfs of its own, where the system
// lets this process mount one (root may).
#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "gtest/gtest.h"

namespace hpo::trainer {

class SmallDisk {
 public:
  explicit SmallDisk(Bytes size) {
    std::filesystem::create_directories(path_);
    const std::string options = absl::StrCat("size=", size.count);
    if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) != 0) {
      why_not_ = absl::StrCat("cannot mount a tmpfs: ", std::strerror(errno));
    }
  }
  ~SmallDisk() {
    if (why_not_.empty()) ::umount2(path_.c_str(), MNT_DETACH);
    std::filesystem::remove_all(path_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Empty: it is there.
  const std::string& why_not() const { return why_not_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = absl::StrCat(testing::TempDir(), "/small_disk_", RandomId());
  std::string why_not_;
};

}  // namespace hpo::trainer
