// Entry point of the program `headlight`.
#include <cstdio>

int main() {
  std::puts("headlight");
  return 0;
}
