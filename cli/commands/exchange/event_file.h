// TensorBoard's event files. Pure: values in, bytes out.
//
// A file is a sequence of TFRecords, each one serialised Event (proto/tensorboard/event.proto). A
// record is its length (64 bits, little endian), the masked CRC-32C of these eight bytes, the data
// and the masked CRC-32C of the data. Source of framing and mask: tensorflow/core/lib/io/
// record_writer.cc and tensorflow/core/lib/hash/crc32c.h; of the polynomial: RFC 3720, B.4.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/study/trial_view.h"

namespace hpo::cli {

// CRC-32C (Castagnoli), rotated right by 15 bits plus a constant.
uint32_t MaskedCrc32c(absl::string_view data);

// `data` as one record.
std::string TfRecord(absl::string_view data);

// A whole file: what it is, the trial's parameters (for the plugin "hparams"), each measurement's
// metrics under their names, the result's under "result/NAME", and how it ended. The same trial
// gives the same bytes. Times: TrialView::TimeOf.
std::string EventFile(const TrialView& view);

}  // namespace hpo::cli
