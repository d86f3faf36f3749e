// TensorBoard event files: TFRecord frames (length, masked CRC-32C, data, masked CRC-32C) of Event
// protobuf messages (tensorflow/core/util/event.proto, framework/summary.proto), scalars only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headlight/io/file.h"

namespace headlight {

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, RFC 3720 B.4).
uint32_t Crc32c(std::string_view bytes);

// "events.out.tfevents.<whole seconds>.<host>": TensorBoard finds files by this name.
std::string TfEventsFileName(double wall_seconds, std::string_view host);

// Appends scalars; one write() an event, so that a killed run leaves whole records.
class TfEventsWriter {
 public:
  TfEventsWriter() = default;  // closed
  // Opens for appending; a new (empty) file gets the file version record first.
  TfEventsWriter(const std::string& path, double wall_seconds);

  bool is_open() const { return file_.is_open(); }
  // wall_seconds: since 1970. The tag's '/' groups charts in TensorBoard.
  void Scalar(std::string_view tag, double value, int64_t step, double wall_seconds);
  // Length of the file, for CutFile when a run is resumed from here.
  int64_t bytes() const { return file_.bytes(); }
  void Sync() { file_.Sync(); }

 private:
  AppendWriter file_;
};

}  // namespace headlight
