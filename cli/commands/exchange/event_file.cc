#include "cli/commands/exchange/event_file.h"

#include <array>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "tensorboard/event.pb.h"

namespace hpo::cli {
namespace {

using tensorboard::Event;
using tensorboard::HParamsPluginData;

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed
constexpr uint32_t kMaskDelta = 0xa282ead8;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

std::string LittleEndian(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return bytes;
}

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

Event EventAt(absl::Time time, int64_t step) {
  Event event;
  event.set_wall_time(Seconds(time));
  event.set_step(step);
  return event;
}

// Maps in the order of their keys, so that the same event gives the same bytes.
template <typename Message>
std::string Serialized(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

void Append(const Event& event, std::string& file) { file += TfRecord(Serialized(event)); }

void AppendScalars(const Metrics& metrics, const std::string& prefix, Event event,
                   std::string& file) {
  if (metrics.empty()) return;
  for (const auto& [name, value] : metrics) {
    tensorboard::SummaryValue& scalar = *event.mutable_summary()->add_value();
    scalar.set_tag(prefix + name);
    scalar.set_simple_value(static_cast<float>(value));
  }
  Append(event, file);
}

void AppendHParams(const std::string& tag, HParamsPluginData data, Event event, std::string& file) {
  tensorboard::SummaryValue& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  tensorboard::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name("hparams");
  plugin.set_content(Serialized(data));
  Append(event, file);
}

google::protobuf::Value ValueOf(const ParamValue& param) {
  google::protobuf::Value value;
  if (const auto* flag = std::get_if<bool>(&param)) {
    value.set_bool_value(*flag);
  } else if (const auto* integer = std::get_if<int64_t>(&param)) {
    value.set_number_value(static_cast<double>(*integer));
  } else if (const auto* real = std::get_if<double>(&param)) {
    value.set_number_value(*real);
  } else {
    value.set_string_value(FormatParam(param));
  }
  return value;
}

HParamsPluginData StartOf(const Trial& trial) {
  HParamsPluginData data;
  tensorboard::SessionStartInfo& start = *data.mutable_session_start_info();
  for (const auto& [name, value] : trial.params) (*start.mutable_hparams())[name] = ValueOf(value);
  start.set_group_name(absl::StrCat(trial.id.study, "#", trial.id.number.value));
  start.set_start_time_secs(Seconds(trial.started));
  return data;
}

HParamsPluginData EndOf(const Trial& trial) {
  HParamsPluginData data;
  const bool failed = trial.state == TrialState::kFailed;
  data.mutable_session_end_info()->set_status(failed ? tensorboard::STATUS_FAILURE
                                                     : tensorboard::STATUS_SUCCESS);
  data.mutable_session_end_info()->set_end_time_secs(Seconds(trial.ended));
  return data;
}

}  // namespace

uint32_t MaskedCrc32c(absl::string_view data) {
  uint32_t crc = 0xffffffff;
  for (const char c : data) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

std::string TfRecord(absl::string_view data) {
  const std::string length = LittleEndian(data.size(), 8);
  return absl::StrCat(length, LittleEndian(MaskedCrc32c(length), 4), data,
                      LittleEndian(MaskedCrc32c(data), 4));
}

std::string EventFile(const TrialView& view) {
  const Trial& trial = view.trial;
  std::string file;
  Event version = EventAt(trial.started, 0);
  version.set_file_version("brain.Event:2");
  Append(version, file);
  AppendHParams("_hparams_/session_start_info", StartOf(trial), EventAt(trial.started, 0), file);
  for (const Measurement& measurement : view.measurements) {
    AppendScalars(measurement.metrics, "", EventAt(view.TimeOf(measurement.step), measurement.step),
                  file);
  }
  if (!trial.outcome) return file;
  const int64_t step = view.measurements.empty() ? 0 : view.measurements.back().step;
  if (const auto* completed = std::get_if<Completed>(&*trial.outcome)) {
    AppendScalars(completed->metrics, "result/", EventAt(view.TimeOf(step), step), file);
  }
  AppendHParams("_hparams_/session_end_info", EndOf(trial), EventAt(view.TimeOf(step), step), file);
  return file;
}

}  // namespace hpo::cli
