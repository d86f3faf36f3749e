// SIGKILL at random moments: the run resumes to the bits that it would have reached.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headlight/base/clock.h"
#include "headlight/base/random.h"
#include "headlight/train/checkpoint.h"
#include "headlight/train/config_field.h"
#include "headlight/train/test_support-inl.h"
#include "headlight/train/trainer.h"

namespace headlight {
namespace {

using testing_support::SmallConfig;
using testing_support::TemporaryFolder;
using testing_support::ToyData;

constexpr const char* kDirectoryVariable = "HEADLIGHT_TEST_KILLED_RUN";

TrainConfig KilledConfig() {
  TrainConfig config = SmallConfig();
  SetField(config, "epochs", "12");
  SetField(config, "checkpoint-every", "4");
  SetField(config, "threads", "1");
  return config;
}

// The program that is killed: not a test of its own.
TEST(TrainerKill, DISABLED_Child) {
  const char* directory = std::getenv(kDirectoryVariable);
  ASSERT_NE(directory, nullptr);
  const TrainConfig config = KilledConfig();
  Train(config, ToyData(config), {.directory = directory, .existing = OnExisting::kResume});
}

// A new process (threads do not survive a fork) that trains into `directory`. Nothing of the test
// runner's own environment reaches it: a shard of a single test would run none.
pid_t StartChild(const std::string& directory) {
  std::vector<std::string> environment = {std::string(kDirectoryVariable) + "=" + directory};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (!variable.starts_with("GTEST_")) environment.emplace_back(variable);
  }
  std::vector<std::string> arguments = {"/proc/self/exe",
                                        "--gtest_filter=TrainerKill.DISABLED_Child",
                                        "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  pid_t child = -1;
  const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
                                pointers(arguments).data(), pointers(environment).data());
  EXPECT_EQ(error, 0);
  return child;
}

int WaitFor(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(TrainerKill, KilledAtRandomMomentsResumesToTheSameBits) {
  const TemporaryFolder folder;
  const RunPaths straight(folder / "straight");
  const RunPaths killed(folder / "killed");
  const double began = MonotonicSeconds();
  ASSERT_EQ(WaitFor(StartChild(straight.root)), 0);
  const double whole = MonotonicSeconds() - began;
  RandomStream random(static_cast<uint64_t>(getpid()), 0);
  int kills = 0;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = StartChild(killed.root);
    std::this_thread::sleep_for(std::chrono::duration<double>(whole * 0.6 * random.Uniform()));
    kill(child, SIGKILL);
    kills += WIFSIGNALED(WaitFor(child)) ? 1 : 0;
  }
  EXPECT_GT(kills, 0);
  ASSERT_EQ(WaitFor(StartChild(killed.root)), 0);
  EXPECT_EQ(ReadFile(killed.last()), ReadFile(straight.last())) << "seed " << getpid();
  EXPECT_EQ(ReadFile(killed.best()), ReadFile(straight.best()));
  EXPECT_EQ(ReadFile(killed.text()), ReadFile(straight.text()));
  EXPECT_EQ(ReadFile(killed.config()), ReadFile(straight.config()));
}

}  // namespace
}  // namespace headlight
