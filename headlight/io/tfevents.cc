#include "headlight/io/tfevents.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = MakeTable();

template <typename T>
void PutLittleEndian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
  }
}

// Protobuf wire format (protobuf.dev/programming-guides/encoding): a field is its number and wire
// type, then the value.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value | 0x80)));
    value >>= 7;
  }
  out.push_back(static_cast<char>(static_cast<unsigned char>(value)));
}

void PutKey(std::string& out, uint32_t field, WireType type) { PutVarint(out, field << 3 | type); }

void PutBytes(std::string& out, uint32_t field, std::string_view bytes) {
  PutKey(out, field, kBytes);
  PutVarint(out, bytes.size());
  out.append(bytes);
}

void PutDouble(std::string& out, uint32_t field, double value) {
  PutKey(out, field, kFixed64);
  PutLittleEndian(out, std::bit_cast<uint64_t>(value));
}

// TFRecord: a CRC is rotated and shifted by a constant, because CRCs of data that hold CRCs are
// weak.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string Frame(std::string_view event) {
  std::string frame;
  PutLittleEndian(frame, uint64_t{event.size()});
  PutLittleEndian(frame, MaskedCrc(frame));
  frame.append(event);
  PutLittleEndian(frame, MaskedCrc(event));
  return frame;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  }
  return ~crc;
}

std::string TfEventsFileName(double wall_seconds, std::string_view host) {
  return fmt::format("events.out.tfevents.{:010.0f}.{}", std::floor(wall_seconds), host);
}

// Event: double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5.
TfEventsWriter::TfEventsWriter(const std::string& path, double wall_seconds) : file_(path) {
  if (file_.bytes() > 0) return;
  std::string event;
  PutDouble(event, 1, wall_seconds);
  PutBytes(event, 3, "brain.Event:2");
  file_.Append(Frame(event));
}

// Summary: repeated Value value = 1; Value: string tag = 1; float simple_value = 2.
void TfEventsWriter::Scalar(std::string_view tag, double value, int64_t step, double wall_seconds) {
  std::string scalar;
  PutBytes(scalar, 1, tag);
  PutKey(scalar, 2, kFixed32);
  PutLittleEndian(scalar, std::bit_cast<uint32_t>(static_cast<float>(value)));
  std::string summary;
  PutBytes(summary, 1, scalar);
  std::string event;
  PutDouble(event, 1, wall_seconds);
  PutKey(event, 2, kVarint);
  PutVarint(event, static_cast<uint64_t>(step));
  PutBytes(event, 5, summary);
  file_.Append(Frame(event));
}

}  // namespace headlight
