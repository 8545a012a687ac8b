#include "common/base/log.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/json_reader.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

constexpr std::array<std::pair<const char*, spdlog::level::level_enum>, 6> kLevels = {{
    {"trace", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
}};

const char* LevelName(spdlog::level::level_enum level) {
  for (const auto& [name, value] : kLevels) {
    if (value == level) return name;
  }
  return "error";
}

std::string FormatTime(spdlog::log_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

// One message is one line, whatever a client's or trainer's text in it holds: a newline in it could
// pass for a line of ours, and an escape sequence drive the terminal.
void AppendEscaped(absl::string_view text, std::string& line) {
  for (const char c : text) {
    if (c == '\n') {
      line.append("\\n");
    } else if (c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) {
      line.push_back(c);
    } else {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
}

class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    std::string line = absl::StrCat(FormatTime(message.time), " ", LevelName(message.level), " ");
    AppendEscaped({message.payload.data(), message.payload.size()}, line);
    line.push_back('\n');
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>();
  }
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    nlohmann::ordered_json json;
    json["time"] = FormatTime(message.time);
    json["level"] = LevelName(message.level);
    json["message"] = std::string(message.payload.data(), message.payload.size());
    const std::string line =
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

absl::Status InitLog(absl::string_view level, bool json) {
  for (const auto& [name, value] : kLevels) {
    if (level != name) continue;
    auto logger =
        std::make_shared<spdlog::logger>("hpo", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (json) {
      logger->set_formatter(std::make_unique<JsonFormatter>());
    } else {
      logger->set_formatter(std::make_unique<TextFormatter>());
    }
    logger->set_level(value);
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "log level: expected trace, debug, info, warn, error or off, got '", level, "'"));
}

}  // namespace hpo
